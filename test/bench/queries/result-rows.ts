import { type Bar, type Row, toRow } from '../figure.ts';
import type { Answer } from './ask.ts';
import type { Question } from './questions.ts';

/** One question with its results. `exact` is absent where it is not asked. */
export interface Answered {
  readonly question: Question;
  readonly raw: Answer;
  readonly exact?: Answer;
  readonly identified: Answer;
  readonly peer: Answer;
}

const OF_A_DAY: readonly Bar[] = [{ of: 'ratio', bound: 'at most', must: 3, aim: 1.5 }];
const MEMORY: readonly Bar[] = [{ of: 'ours', bound: 'at most', must: 500, aim: 200 }];
const MEGA = 1e6;

/** For people to read, such as `34.1 M`. */
function describeCount(count: number): string {
  if (count >= MEGA) return `${(count / MEGA).toFixed(1)} M`;
  return count >= 1e3 ? `${Math.round(count / 1e3)} k` : String(count);
}

function describe({ coldMs, warm, memoryBytes, cpuMs }: Answer): string {
  const [read, memory] = [warm.readBytes / MEGA, memoryBytes / MEGA].map((mb) =>
    mb < 10 ? mb.toFixed(1) : Math.round(mb),
  );
  return `cold ${Math.round(coldMs)} ms, CPU ${Math.round(cpuMs)} ms, ${describeCount(warm.readRows)} rows, ${read} MB read, memory ${memory} MB`;
}

/** Our best warm result, beside raw rows and beside the peer. */
export function toQuestionRows({ question, raw, exact, identified, peer }: Answered): Row[] {
  const row = (kind: string, ours: Answer, [beside, theirs]: readonly [string, Answer]) => ({
    figure: 'queries',
    case: `${question.name}, ${kind}`,
    unit: 'ms',
    ours: ours.warm.ms,
    beside,
    theirs: theirs.warm.ms,
    also: `${describe(ours)}; theirs ${describe(theirs)}`,
  });
  const ofDay = question.isOfDay ? OF_A_DAY : [];
  const [besideRaw, besidePeer] = [
    ['raw rows', raw],
    ['the peer', peer],
  ] as const;
  const rows = [
    ...(exact === undefined ? [] : [toRow({ ...row('exact', exact, besideRaw), bars: ofDay })]),
    toRow({ ...row('identified', identified, besideRaw), bars: [...ofDay, ...(question.bars ?? [])] }),
    toRow(row('identified', identified, besidePeer)),
  ];
  if (question.readRowsBar === undefined) return rows;
  const readRow = { ...row('identified', identified, besideRaw), unit: 'rows read', ours: identified.warm.readRows };
  return [...rows, toRow({ ...readRow, theirs: raw.warm.readRows, bars: [question.readRowsBar], also: '' })];
}

/** Our query with the highest peak memory, beside the same over raw rows. */
export function toMemoryRow(answered: readonly Answered[]): Row {
  const largest = (of: (one: Answered) => readonly (Answer | undefined)[]) => {
    const held = answered.flatMap((one) =>
      of(one).map((answer) => ({ name: one.question.name, mb: (answer?.memoryBytes ?? 0) / MEGA })),
    );
    return held.reduce((most, one) => (one.mb > most.mb ? one : most));
  };
  const ours = largest(({ exact, identified }) => [exact, identified]);
  const theirs = largest(({ raw }) => [raw]);
  const peer = largest((one) => [one.peer]);
  return toRow({
    figure: 'queries',
    case: 'most memory of any question',
    unit: 'MB',
    ours: ours.mb,
    bars: MEMORY,
    beside: 'raw rows',
    theirs: theirs.mb,
    also: `ours: ${ours.name}; theirs: ${theirs.name}; the peer ${Math.round(peer.mb)} MB: ${peer.name}`,
  });
}
