// Creates the dashboards in infra/dashboards/operations-*.json from the lists in `panels`.
import { DEPLOYMENT_RULES } from '@playline/alerts';
import { CHAIN } from './panels/chain.ts';
import { CONSUMERS } from './panels/consumers.ts';
import { ERASURE } from './panels/erasure.ts';
import { HEALTH } from './panels/health.ts';
import { INGEST } from './panels/ingest.ts';
import type { Dashboard, Panel } from './panels/panel.ts';

/** The dashboards by the last part of their file name. */
export const DASHBOARDS: Readonly<Record<string, Dashboard>> = {
  health: HEALTH,
  ingest: INGEST,
  consumers: CONSUMERS,
  erasure: ERASURE,
  chain: CHAIN,
};

/** Returns every query with the variables of Grafana replaced. */
export const readQueries = (): { dashboard: string; panel: string; query: string }[] =>
  Object.entries(DASHBOARDS).flatMap(([dashboard, { panels }]) =>
    panels.flatMap(({ title, queries }) =>
      queries.map(([query]) => ({ dashboard, panel: title, query: query.replaceAll('$__rate_interval', '1m') })),
    ),
  );

export const alertsOf = ({ alert, related = [] }: Panel): string[] => [
  ...(alert === undefined ? [] : [alert]),
  ...related,
];

const DATASOURCE = { type: 'prometheus', uid: `\${datasource}` };
/** Two panels per row of 24 columns. */
const [WIDTH, HEIGHT] = [12, 8];

/** Returns the steps of the colours: from the comparison at the end of the alert's rule, or from `redFrom`. */
function toSteps({ alert, redFrom }: Panel): { color: string; value: number | null }[] {
  const { expr = '' } = DEPLOYMENT_RULES.find(({ name }) => name === alert) ?? {};
  const [, operator = '', text = ''] = /(==|[<>]=?) ([\d.]+(?: \* [\d.]+)*)$/.exec(expr) ?? [];
  const limit = text.split(' * ').reduce((product, factor) => product * Number(factor), 1);
  // A threshold belongs to the upper range, so both "0" and "more than 0" are separated by 1.
  const threshold = operator === '' ? redFrom : limit || 1;
  if (threshold === undefined) return [{ color: 'green', value: null }];
  const isRedBelow = operator === '<' || (operator === '==' && limit === 0);
  const [lower, upper] = isRedBelow ? ['red', 'green'] : ['green', 'red'];
  return [
    { color: lower, value: null },
    { color: upper, value: threshold },
  ];
}

const OPTIONS = {
  stat: {
    colorMode: 'background',
    graphMode: 'none',
    reduceOptions: { calcs: ['lastNotNull'] },
    textMode: 'value_and_name',
  },
  timeseries: {
    legend: { calcs: ['lastNotNull', 'max'], displayMode: 'table', placement: 'bottom', showLegend: true },
    tooltip: { mode: 'multi', sort: 'desc' },
  },
};

function toPanel(panel: Panel, index: number): object {
  const { title, unit, description, queries } = panel;
  const alerts = alertsOf(panel);
  const type = panel.isStat ? 'stat' : 'timeseries';
  const steps = toSteps(panel);
  return {
    id: index + 1,
    type,
    title,
    description: alerts.length === 0 ? description : `${description} Alerts: ${alerts.join(', ')} (infra/ALERTS.md).`,
    datasource: DATASOURCE,
    gridPos: { x: (index % 2) * WIDTH, y: Math.floor(index / 2) * HEIGHT, w: WIDTH, h: HEIGHT },
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        thresholds: { mode: 'absolute', steps },
        ...(type === 'timeseries' && {
          custom: { lineWidth: 1, showPoints: 'never', thresholdsStyle: { mode: steps.length > 1 ? 'line' : 'off' } },
        }),
      },
      overrides: [],
    },
    options: OPTIONS[type],
    targets: queries.map(([expr, legendFormat], position) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + position),
      datasource: DATASOURCE,
      expr,
      legendFormat,
      ...(type === 'stat' ? { instant: true } : { range: true }),
    })),
  };
}

/** Returns the JSON that Grafana imports. */
export function toJson(name: string, { title, description, panels }: Dashboard): string {
  const model = {
    uid: `playline-operations-${name}`,
    title: `Operations: ${title}`,
    description: `${description} Times are in UTC.`,
    tags: ['playline-operations'],
    timezone: 'utc',
    schemaVersion: 39,
    version: 1,
    editable: true,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    links: [
      { type: 'dashboards', title: 'Operations', tags: ['playline-operations'], keepTime: true, asDropdown: true },
    ],
    templating: {
      list: [{ name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' }],
    },
    annotations: { list: [] },
    panels: panels.map(toPanel),
  };
  const text = JSON.stringify(model, null, 2);
  // The format of Biome, which writes short lists on one line.
  return `${text.replace(/\[\n\s+("[^\n]*"(?:,\n\s+"[^\n]*")*)\n\s+\]/g, (_, items: string) => `[${items.replace(/\n\s+/g, ' ')}]`)}\n`;
}
