import type { Summary } from '@playline/chain';

/** Summarises logs that exceed a block's budget. */
export interface SummaryNotice {
  readonly block: number;
  /** null for a summary of several contracts. */
  readonly contract: string | null;
  readonly contracts: number;
  readonly logs: number;
  readonly tokens: bigint;
  readonly firstId: bigint;
  readonly lastId: bigint;
}

/** Maximum contracts with their own notice. `npm run chain -- verify` lists every log. */
const NAMED_MAX = 10;
/** Limits dead letters, so that summaries in every block do not hide other dead letters. */
const DEAD_LETTERS_PER_HOUR = 100;
const HOUR_MS = 3_600_000;

function merge(one: SummaryNotice, other: SummaryNotice): SummaryNotice {
  const isSameContract = one.contract !== null && one.contract === other.contract;
  return {
    block: one.block,
    contract: isSameContract ? one.contract : null,
    contracts: isSameContract ? 1 : one.contracts + other.contracts,
    logs: one.logs + other.logs,
    tokens: one.tokens + other.tokens,
    firstId: one.firstId < other.firstId ? one.firstId : other.firstId,
    lastId: one.lastId > other.lastId ? one.lastId : other.lastId,
  };
}

export class BlockSummaries {
  private readonly byContract = new Map<string, SummaryNotice>();

  note(block: number, { contract, ...summary }: Summary): void {
    const notice = { block, contract, contracts: 1, logs: 1, ...summary };
    const previous = this.byContract.get(contract);
    this.byContract.set(contract, previous === undefined ? notice : merge(previous, notice));
  }

  /** @returns the completed block's summaries, most tokens first */
  drain(): readonly SummaryNotice[] {
    if (this.byContract.size === 0) return [];
    const all = [...this.byContract.values()].sort((one, other) => (one.tokens > other.tokens ? -1 : 1));
    this.byContract.clear();
    const remaining = all.slice(NAMED_MAX);
    return [...all.slice(0, NAMED_MAX), ...(remaining.length === 0 ? [] : [remaining.reduce(merge)])];
  }
}

export function toNoticeText(
  chain: string,
  { block, contract, contracts, logs, tokens, ...ids }: SummaryNotice,
): string {
  const subject = contract ?? `${contracts} other contracts`;
  return (
    `${chain} ${subject}: ${tokens} tokens (ids ${ids.firstId} to ${ids.lastId}) from ${logs} logs in block ${block} ` +
    "are not in the history as individual activities: the block's budget was exceeded"
  );
}

export class DeadLetterLimit {
  private remaining = DEAD_LETTERS_PER_HOUR;
  private atMs = 0;

  take(notices: readonly SummaryNotice[], nowMs: number): readonly SummaryNotice[] {
    const refilled = ((nowMs - this.atMs) * DEAD_LETTERS_PER_HOUR) / HOUR_MS;
    [this.remaining, this.atMs] = [Math.min(DEAD_LETTERS_PER_HOUR, this.remaining + refilled), nowMs];
    const allowed = notices.slice(0, Math.floor(this.remaining));
    this.remaining -= allowed.length;
    return allowed;
  }
}
