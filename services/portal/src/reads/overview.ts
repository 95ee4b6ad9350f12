/** Reads the counts of the overview, which the event writer keeps for finished minutes. */
import { number, type QueryView, type Row, text } from './query-view.ts';

export interface OverviewSearch {
  readonly environmentId: string;
  readonly spanS: number;
  /** Length of the counted intervals. */
  readonly stepS: number;
  readonly sinceS: number;
  readonly untilS: number;
}

const COLUMNS = {
  part: text('part'),
  name: text('name'),
  field: text('field'),
  library: text('library'),
  libraryVersion: text('library_version'),
  atS: number('at_s'),
  value: number('value'),
  previous: number('previous'),
  total: number('total'),
  previousTotal: number('previous_total'),
};

/** A value and its value in the previous span. `total` is the sum over all lines of the part, also those not returned. */
export type OverviewLine = Row<typeof COLUMNS>;
/** An interval with its messages, in ascending order. */
type Point = Pick<OverviewLine, 'atS' | 'value'>;

export interface Overview {
  readonly events: readonly OverviewLine[];
  readonly clients: readonly OverviewLine[];
  /** Recorded errors by code, field and client version. */
  readonly causes: readonly OverviewLine[];
  readonly accepted: readonly Point[];
  readonly rejected: readonly Point[];
  /** The end of the time range is `atS`. Null until the players are counted. */
  readonly players: OverviewLine | null;
  readonly eventPlayers: ReadonlyMap<string, number>;
  /** 99th percentile in milliseconds. */
  readonly delay: OverviewLine | null;
  /** The hour of the first message, or its minute until it is counted; null before the first message. */
  readonly firstS: number | null;
  readonly openErasures: number;
  readonly pendingMints: number;
}

export async function readOverview(queryView: QueryView, search: OverviewSearch): Promise<Overview> {
  const { environmentId: environment, spanS: span, stepS: step, sinceS: since, untilS: until } = search;
  const args = { environment, step, before: since - span, since, until };
  const common = { columns: COLUMNS, tail: 'ORDER BY at_s, value DESC', rowsMax: 20_000 };
  const lines = await Promise.all([
    queryView({ ...common, view: 'portal_overview_counts', args }),
    queryView({ ...common, view: 'portal_overview_state', args: { ...args, span } }),
  ]);
  const parts = Map.groupBy(lines.flat(), ({ part }) => part);
  const linesOf = (part: string) => parts.get(part) ?? [];
  return {
    events: linesOf('events'),
    clients: linesOf('clients'),
    causes: linesOf('rejections'),
    accepted: linesOf('accepted'),
    rejected: linesOf('rejected'),
    players: linesOf('players')[0] ?? null,
    eventPlayers: new Map(linesOf('event players').map(({ name, value }) => [name, value])),
    delay: linesOf('delay')[0] ?? null,
    firstS: linesOf('first')[0]?.atS ?? null,
    openErasures: linesOf('erasures')[0]?.value ?? 0,
    pendingMints: linesOf('mints')[0]?.value ?? 0,
  };
}
