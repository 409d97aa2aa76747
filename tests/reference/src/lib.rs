//! Nothing here: the package exists for its tests.
