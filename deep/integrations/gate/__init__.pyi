from ._gate import GateCase as GateCase
from ._gate import GateRun as GateRun
from ._gate import gate_cases as gate_cases
from ._gate import run_gate as run_gate
from ._gate import write_gate as write_gate
