"""What CI runs for an event or a change, as jobs of GitHub Actions: `tilestack matrix plan`.

`graph.py` finds what a changed file reaches, `jobs.py` makes jobs of it, `show.py` writes them. The document that
`--json` prints:

- `event`, `base` (a commit, or null), `full` (whether everything is run), `why` (in words: what differs from the base,
  or why that cannot be told)
- `reasons`: for each changed path the stages that it reaches, and why
- `jobs`: by kind, `compile`, `interpret`, `gpu`, `tools` and `bench`, a list of jobs. Every job has `name`, `runs_on`
  (labels), `minutes` (estimated), `timeout` (minutes), `required` and `local` (the command that does the same on a
  laptop). `compile`: also `target`, `artifact` and `options` of `nox -s bundles`. `interpret`: `number` and `options`
  of `tilestack matrix run`. `gpu`: `runner`, `gpu`, `target`, `image`, `artifact` (the bundle's), `number`, `options`,
  `check` (whether it runs the conformance matrix), `gate` (whether it compares the speed), `cells`. `tools`: `tileiras`
  (a version). `bench`: as `gpu` as far as `artifact`. A `number` counts the jobs of a kind, of a runner.
- `estimate`: `gpu_minutes`, `hosted_minutes`, `jobs`, `cells`
"""
