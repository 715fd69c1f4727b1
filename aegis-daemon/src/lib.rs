//! The AEGIS daemon aegisd and its command line aegis.
