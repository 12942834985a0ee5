"""`ooospec doctor`: looks at everything that speculation needs, and names the command that mends what is wrong."""

from ooospec_agents.doctor.findings import Finding
from ooospec_agents.doctor.run import Servers, examine, exit_code, to_json, to_text

__all__ = ["Finding", "Servers", "examine", "exit_code", "to_json", "to_text"]
