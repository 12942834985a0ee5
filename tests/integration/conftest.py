from ooospec_agents.testing.fixtures import scripted_sidecar, scripted_target

__all__ = ["scripted_sidecar", "scripted_target"]
