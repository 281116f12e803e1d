"""Tools that every room shares: checks, columns of tables, frames, files, names, text, odds and figures, each once."""
