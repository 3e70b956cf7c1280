//! Which Istio versions can be installed, and the chart bytes of each.
