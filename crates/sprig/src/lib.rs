//! The Sprig function library for mainstay-template.
