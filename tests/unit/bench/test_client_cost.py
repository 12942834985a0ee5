from ooospec_agents.bench.client_cost import paired


def test_pairs_are_taken_by_turns_and_the_first_does_not_count() -> None:
    taken: list[str] = []

    def stock() -> float:
        taken.append("stock")
        return 9.0 if len(taken) == 1 else 0.001

    def ours() -> float:
        taken.append("ours")
        return 0.003

    found = paired(stock, ours, 4)
    assert taken == ["stock", "ours", "stock", "ours", "ours", "stock", "stock", "ours", "ours", "stock"]
    assert (found["stock_ms"], found["ours_ms"], found["added_ms"]) == (1.0, 3.0, 2.0)
