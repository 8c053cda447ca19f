"""The progress bar."""

from support.helpers import circle, decay

from tether import solve_dae


def test_progress(capfd):
    sol = solve_dae(circle, (0, 10), [1.0, 0.0], progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.endswith("\n")
    last = err.rsplit("\r", 1)[-1]
    assert last.startswith("[" + "#" * 30 + "] 100.0%")
    assert f"steps={sol.stats.steps}" in last
    assert f"order={sol.stats.order[-1]}" in last
    assert "h=" in last
    assert "t=10" in last


def test_progress_of_a_run_that_stops_half_way(capfd):
    solve_dae(decay, (0, 10), [1.0], progress=True, callback=lambda t, y, yp: t > 5)
    last = capfd.readouterr().err.rsplit("\r", 1)[-1]
    assert 14 <= last.count("#") <= 20
    solve_dae(decay, (10, 0), [1.0], progress=True, callback=lambda t, y, yp: t < 5)
    last = capfd.readouterr().err.rsplit("\r", 1)[-1]
    assert 14 <= last.count("#") <= 20


def test_nothing_is_written_without_progress(capfd):
    solve_dae(circle, (0, 10), [1.0, 0.0])
    assert capfd.readouterr() == ("", "")


def test_progress_says_what_comes_before_the_first_step(capfd):
    solve_dae(lambda t, y, yp: yp + y, (0, 1), [1.0, 2.0], progress=True)
    first = capfd.readouterr().err.split("\r")[1]
    assert first.startswith("looking at 2 equations ...")
