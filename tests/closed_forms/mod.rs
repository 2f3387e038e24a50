//! Closed forms that several suites hold write amplification to.

/// The root of a function that changes its sign once between `low` and `high`.
pub fn root(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let rising = f(low) < 0.0;
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if (f(middle) < 0.0) == rising { low = middle } else { high = middle }
    }
    low
}

/// FIFO cleaning under uniform random writes (also the limit of greedy for large blocks), with a share `u` of the pages valid: with
/// v the valid share of the cleaned block, v = exp(-(1 - v) / u) and A = 1 / (1 - v). (Xiang and Kurkoski, arXiv 1110.4245.)
pub fn fifo_uniform(u: f64) -> f64 {
    // The trivial root is v = 1; the other lies below it.
    let v = root(0.0, 1.0 - 1e-9 - (1.0 - u) / 2.0, |v| v - (-(1.0 - v) / u).exp());
    1.0 / (1.0 - v)
}
