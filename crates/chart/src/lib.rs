//! Helm charts: load, coalesce values, render.
