"""The demo names the years that were recorded in other units, and a line for the others."""

from regimix import demo


def test_the_demo_tells_which_years_are_wrong(capsys):
    demo.main()
    told = capsys.readouterr().out
    assert "Calls = " in told
    for year in range(1964, 1970):
        assert f"\n    {year} " in told
    for year in range(1950, 1962):
        assert f"\n    {year} " not in told
