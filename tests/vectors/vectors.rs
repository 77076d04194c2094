//! Vectors.
