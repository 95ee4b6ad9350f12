import { type ChainNode, describeTokens, NodeFault } from '@playline/chain';
import type { TokenRecord } from '@playline/contracts';

export interface NewTokensOptions {
  /** Name of the chain. */
  readonly chain: string;
  readonly onFault: (node: ChainNode, fault: NodeFault) => void;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs: () => number;
}

/** A token that was seen, and that is not published. */
interface OpenToken {
  /** True once a question about several tokens has failed with this one among them. */
  isAlone: boolean;
  /** Failed questions about this token alone. */
  failures: number;
  dueAtMs: number;
}

/** Tokens in one question. Their calls fit in one request. */
const TOGETHER_MAX = 16;
/** Activities wait while tokens are described. Tokens that are not asked about in this time wait for the next batch. */
const ROUND_MAX_MS = 5_000;
/** A token that is dropped is described when it appears in a log again. */
const OPEN_MAX = 10_000;
/** After a failed question: there may be many slow contracts. */
const REST_MS = 30_000;
const WAIT_MAX_MS = 3_600_000;

/**
 * Describes tokens that are new. A contract decides how long its answer takes, and whether the node can answer at all.
 * So when a question about several tokens fails, each of them is asked about alone, and one that fails alone is passed
 * over and tried again later.
 */
export class NewTokens {
  private readonly options: NewTokensOptions;
  private readonly known = new Set<string>();
  private readonly open = new Map<string, OpenToken>();
  private restsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: NewTokensOptions) {
    this.options = options;
  }

  /**
   * @param seen contracts of tokens
   * @param readKnown reads contracts of tokens that the log has: an operator may have changed them, so they are never
   * published again
   */
  async describe(
    node: ChainNode,
    seen: Iterable<string>,
    readKnown: () => Promise<Iterable<string>>,
  ): Promise<readonly TokenRecord[]> {
    this.note(seen);
    if (this.questions().length === 0) return [];
    for (const token of await readKnown()) this.forget(token);
    const described: TokenRecord[] = [];
    const endMs = this.options.nowMs() + ROUND_MAX_MS;
    for (const contracts of this.questions()) {
      if (this.options.nowMs() > endMs) break;
      try {
        for (const each of await describeTokens(node, this.options.chain, contracts)) described.push(each);
      } catch (fault) {
        if (!(fault instanceof NodeFault)) throw fault;
        this.options.onFault(node, fault);
        this.postpone(contracts, fault);
        break;
      }
    }
    return described;
  }

  /** Notes that a token is published. */
  forget(token: string): void {
    this.known.add(token);
    this.open.delete(token);
  }

  private note(seen: Iterable<string>): void {
    for (const token of seen)
      if (!this.known.has(token) && !this.open.has(token))
        this.open.set(token, { isAlone: false, failures: 0, dueAtMs: Number.NEGATIVE_INFINITY });
    for (const token of this.open.keys()) {
      if (this.open.size <= OPEN_MAX) return;
      this.open.delete(token);
    }
  }

  /** Contracts to ask about now, those of each question. */
  private questions(): readonly (readonly string[])[] {
    const nowMs = this.options.nowMs();
    if (nowMs < this.restsUntilMs) return [];
    const [together, alone]: [string[], string[]] = [[], []];
    for (const [token, { isAlone, dueAtMs }] of this.open)
      if (dueAtMs <= nowMs) (isAlone ? alone : together).push(token);
    const questions: string[][] = [];
    for (let from = 0; from < together.length; from += TOGETHER_MAX)
      questions.push(together.slice(from, from + TOGETHER_MAX));
    return [...questions, ...alone.map((token) => [token])];
  }

  private postpone(contracts: readonly string[], { kind }: NodeFault): void {
    const nowMs = this.options.nowMs();
    this.restsUntilMs = nowMs + REST_MS;
    // The node refuses everything for now, whatever the contracts.
    if (kind === 'busy') return;
    for (const token of contracts) {
      const open = this.open.get(token)!;
      if (open.isAlone) open.dueAtMs = nowMs + Math.min(REST_MS * 2 ** ++open.failures, WAIT_MAX_MS);
      open.isAlone = true;
    }
  }
}
