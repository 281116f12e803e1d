from ._command import main as main
