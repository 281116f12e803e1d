"""Integrations: deep inside the tools that people have, a module and an extra each; none is loaded unless asked for."""
