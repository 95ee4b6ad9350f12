import type { Summary } from '@playline/chain';

/** Logs of one block whose activities are not in the history, because they are over the budget of the block. */
export interface SummaryNotice {
  readonly block: number;
  /** Null: of all further contracts of the block. */
  readonly contract: string | null;
  readonly contracts: number;
  readonly logs: number;
  readonly tokens: bigint;
  /** Lowest and highest id of these logs. */
  readonly firstId: bigint;
  readonly lastId: bigint;
}

/** Contracts that are named per block: a block can have thousands. `npm run chain -- verify` names each log. */
const NAMED_MAX = 10;
/** Dead letters of a chain in an hour. Emitting such logs in every block must not hide other dead letters. */
const DEAD_LETTERS_PER_HOUR = 100;
const HOUR_MS = 3_600_000;

function merge(one: SummaryNotice, other: SummaryNotice): SummaryNotice {
  const isOne = one.contract !== null && one.contract === other.contract;
  return {
    block: one.block,
    contract: isOne ? one.contract : null,
    contracts: isOne ? 1 : one.contracts + other.contracts,
    logs: one.logs + other.logs,
    tokens: one.tokens + other.tokens,
    firstId: one.firstId < other.firstId ? one.firstId : other.firstId,
    lastId: one.lastId > other.lastId ? one.lastId : other.lastId,
  };
}

/** Collects the summaries of one block after the other. */
export class BlockSummaries {
  private readonly byContract = new Map<string, SummaryNotice>();

  note(block: number, { contract, ...summary }: Summary): void {
    const notice = { block, contract, contracts: 1, logs: 1, ...summary };
    const known = this.byContract.get(contract);
    this.byContract.set(contract, known === undefined ? notice : merge(known, notice));
  }

  /** Notices of the block that has ended, most tokens first; empty for most blocks. */
  take(): readonly SummaryNotice[] {
    if (this.byContract.size === 0) return [];
    const all = [...this.byContract.values()].sort((one, other) => (one.tokens > other.tokens ? -1 : 1));
    this.byContract.clear();
    const rest = all.slice(NAMED_MAX);
    return [...all.slice(0, NAMED_MAX), ...(rest.length === 0 ? [] : [rest.reduce(merge)])];
  }
}

export function toNoticeText(
  chain: string,
  { block, contract, contracts, logs, tokens, ...ids }: SummaryNotice,
): string {
  const who = contract ?? `${contracts} further contracts`;
  return (
    `${chain} ${who}: ${tokens} tokens (ids ${ids.firstId} to ${ids.lastId}) of ${logs} logs in block ${block} ` +
    'are not in the history as single activities: over the budget of the block'
  );
}

/** Limits the dead letters of a chain. */
export class DeadLetterLimit {
  private left = DEAD_LETTERS_PER_HOUR;
  private atMs = 0;

  /** Those that may be published now. */
  take(notices: readonly SummaryNotice[], nowMs: number): readonly SummaryNotice[] {
    const regained = ((nowMs - this.atMs) * DEAD_LETTERS_PER_HOUR) / HOUR_MS;
    [this.left, this.atMs] = [Math.min(DEAD_LETTERS_PER_HOUR, this.left + regained), nowMs];
    const taken = notices.slice(0, Math.floor(this.left));
    this.left -= taken.length;
    return taken;
  }
}
