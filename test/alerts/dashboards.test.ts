import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEPLOYMENT_RULES } from '@playline/alerts';
import { createMetrics } from '@playline/runtime';
import { describe, expect, it } from 'vitest';
import { alertsOf, DASHBOARDS, readQueries, toJson } from './dashboards.ts';
import { growth, orZero } from './panels/panel.ts';
import { provideProgram } from './programs.ts';

// To regenerate infra/dashboards/operations-*.json, run `npx vitest run test/alerts/dashboards.test.ts -u`.

const reference = readFileSync(new URL('../../infra/METRICS.md', import.meta.url), 'utf8');
/** The types of all metrics: those in infra/METRICS.md, and the default metrics of a process. */
const types = new Map(
  [
    ...reference.matchAll(/^\| `(\w+)` \| (\w+) \|/gm),
    ...(await createMetrics('gateway').text()).matchAll(/^# TYPE (\w+) (\w+)$/gm),
  ].map(([, name = '', type = '']) => [name, type]),
);
const typeOf = (series: string) =>
  types.get(series) ?? (types.get(series.replace(/_(bucket|sum|count)$/, '')) === 'histogram' ? 'counter' : undefined);

describe.each(Object.entries(DASHBOARDS))('the dashboard operations-%s', (name, dashboard) => {
  it('is generated from its list of panels', async () => {
    await expect(toJson(name, dashboard)).toMatchFileSnapshot(`../../infra/dashboards/operations-${name}.json`);
  });

  it('has 6 to 12 panels with different titles, a unit and a description', () => {
    const { panels } = dashboard;
    expect(panels.length).toBeGreaterThanOrEqual(6);
    expect(panels.length).toBeLessThanOrEqual(12);
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
    for (const panel of panels) {
      expect(panel.unit, panel.title).not.toBe('');
      expect(panel.description, panel.title).toMatch(/^[A-Z0-9`].{20,}[.)]$/);
    }
  });

  it('has a different grid position for each panel', () => {
    const { panels } = JSON.parse(toJson(name, dashboard)) as { panels: { gridPos: Record<string, number> }[] };
    const cells = panels.flatMap(({ gridPos: { x = 0, y = 0, w = 0, h = 0 } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)}:${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(panels.every(({ gridPos: { x = 0, w = 0 } }) => x + w <= 24)).toBe(true);
  });
});

describe('the queries of the operations dashboards', () => {
  it('use only existing metrics, and rates only of counters', () => {
    for (const { dashboard, panel, query } of readQueries()) {
      const where = `${dashboard}, ${panel}: ${query}`;
      expect(query, where).not.toContain('$');
      const metrics = [...query.matchAll(/\b(?:playline|process|nodejs)_\w+/g)].map(([metric]) => metric);
      for (const metric of metrics) expect(typeOf(metric), `${where}: ${metric}`).toBeDefined();
      for (const [, metric = ''] of query.matchAll(/\b(?:rate|increase)\((\w+)/g))
        expect(typeOf(metric), `${where}: ${metric}`).toBe('counter');
    }
  });

  it('show every alert about Playline, and refer only to existing alerts', () => {
    const shown = new Set(Object.values(DASHBOARDS).flatMap(({ panels }) => panels.flatMap(alertsOf)));
    const [all, own] = [DEPLOYMENT_RULES, DEPLOYMENT_RULES.filter(({ expr }) => expr.includes('playline'))].map(
      (rules) => rules.map(({ name }) => name),
    );
    expect([...shown].filter((name) => !all?.includes(name))).toEqual([]);
    expect(own?.filter((name) => !shown.has(name))).toEqual([]);
  });

  it('count events before the first scrape of a series and after a restart, and show stopped services as 0', async () => {
    const [health] = readQueries().filter(({ panel }) => panel === 'Instances that respond');
    const samples: Record<string, Record<string, number>> = {
      [growth('m_total', 'of')]: { '{of="new"}': 5, '{of="old"}': 7, '{of="restarted"}': 2 },
      [orZero('sum by (of) (missing)', 'of')]: { '{of="none"}': 0 },
      [orZero(growth('m_total{of="old"}', 'of'), 'of')]: { '{of="old"}': 7 },
      [health?.query ?? '']: { '{service="gateway"}': 2, '{service="minter"}': 0 },
    };
    const series = {
      'm_total{of="new"}': '_x100 5x20',
      'm_total{of="old"}': '100x110 107x10',
      'm_total{of="restarted"}': '100x110 2x10',
      'up{job="playline",service="gateway",instance="a"}': '1x120',
      'up{job="playline",service="gateway",instance="b"}': '1x120',
      'up{job="playline",service="minter",instance="c"}': '1x50 stale',
    };
    const test = {
      interval: '1m',
      input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
      promql_expr_test: Object.entries(samples).map(([expr, values]) => ({
        expr,
        eval_time: '115m',
        exp_samples: Object.entries(values).map(([labels, value]) => ({ labels, value })),
      })),
    };
    const folder = mkdtempSync(join(tmpdir(), 'dashboards-'));
    const file = join(folder, 'test.json');
    // YAML is a superset of JSON.
    writeFileSync(file, JSON.stringify({ rule_files: [], tests: [test] }));
    execFileSync(await provideProgram('promtool'), ['test', 'rules', file]);
    rmSync(folder, { recursive: true });
  });
});
