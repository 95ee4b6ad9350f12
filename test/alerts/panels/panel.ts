// The dashboards for operators, from which dashboards.ts creates infra/dashboards/operations-*.json. The panels of a
// dashboard follow the order of an investigation: is it up, fast, behind, is data lost, on which instance.

export interface Panel {
  readonly title: string;
  /** A unit of Grafana. */
  readonly unit: string;
  /** What a bad value means and, unless an alert describes it, what to do. */
  readonly description: string;
  /** The alert on this value. Its threshold is drawn as a red line. */
  readonly alert?: string;
  /** Alerts on the same subject, with other thresholds. */
  readonly related?: readonly string[];
  /** A threshold that no alert has: values from this one on are red. */
  readonly redFrom?: number;
  /** Shows only the latest values. */
  readonly isStat?: true;
  /** Pairs of a query and the legend of its series. */
  readonly queries: readonly (readonly [query: string, legend: string])[];
}

export interface Dashboard {
  readonly title: string;
  readonly description: string;
  readonly panels: readonly Panel[];
}

/** Adds a zero if there is no series. Counters with labels have no series before their first event. */
export const orZero = (query: string, label: string, zero = '0') =>
  `${query} or on() label_replace(vector(${zero}), "${label}", "none", "", "")`;
/** Adds an empty series if there is none, where a zero would be wrong. */
export const orEmpty = (query: string, label: string) => orZero(query, label, 'NaN');
export const perSecond = (metric: string, by: string) => `sum by (${by}) (rate(${metric}[$__rate_interval]))`;
/** `increase` ignores the first value of a series, so the value of a series that is younger than the range is used. */
export const growth = (metric: string, by: string, range = '1h') =>
  `sum by (${by}) ((increase(${metric}[${range}]) and ${metric} offset ${range}) or ${metric})`;
export const quantile = (q: number, metric: string, by: string) =>
  `histogram_quantile(${q}, sum by (le, ${by}) (rate(${metric}[$__rate_interval])))`;
/** For rare events, which are missing from a shorter range. */
export const hourlyQuantile = (q: number, metric: string) =>
  `histogram_quantile(${q}, sum by (le) (rate(${metric}_bucket[1h])))`;

export const RESPONSES = 'playline_http_request_duration_seconds_count';
export const RESPONSE_TIMES = 'playline_http_request_duration_seconds_bucket';
