import {
  type ChainNode,
  type ChainOfSettings,
  describeErc20,
  NodeFault,
  type TokenRow,
  toTokenRow,
} from '@playline/chain';
import type { TokenRecord } from '@playline/contracts';
import { PublicError } from '@playline/errors';

/** Looks for tokens that no log of the chain has shown yet. */
export interface TokenLookup {
  /**
   * The token of a contract that answers as an ERC-20; null for any other contract, and for a chain without nodes.
   * @throws PublicError TOO_MANY_REQUESTS_ERROR while too many addresses are looked up; NodeFault when no node answers
   */
  find(chain: string, contract: string): Promise<TokenRow | null>;
}

export interface TokenLookupParts {
  readonly chains: readonly Pick<ChainOfSettings, 'name' | 'chainId' | 'urls'>[];
  /** @param name for faults, which must not show the address */
  readonly createNode: (node: { name: string; url: string }) => ChainNode;
  /** Whether a project has linked the contract. */
  readonly isLinked: (contract: { chain: string; contractAddress: string }) => boolean;
  readonly onLookup: (outcome: LookupOutcome) => void;
  /** Epoch milliseconds. */
  readonly wallClockMs: () => number;
}

export type LookupOutcome = 'token' | 'none' | 'failed' | 'refused';

interface Known {
  readonly token: TokenRow | null;
  readonly fault: unknown;
  readonly untilMs: number;
}

/** Contracts rarely change their names. */
const TOKEN_MS = 600_000;
/** A contract that is deployed now is found a minute later at most, also when it was requested before. */
const NONE_MS = 60_000;
const FAULT_MS = 5_000;
/** Some 10 MB. */
const KNOWN_MAX = 10_000;
/** Look-ups of a chain at a time. Anybody can request any address, so linked contracts have some of their own. */
const UNKNOWN_MAX = 4;
const LINKED_MAX = 4;
/** Look-ups of contracts that no project has linked, of a chain in one process: each is six calls of a node. */
const UNKNOWN_PER_SECOND = 10;
const RETRY_AFTER_S = 1;

/** Nodes of a chain, and what is being requested from them. */
class LookupChain {
  private readonly chain: TokenLookupParts['chains'][number];
  private readonly nodes: readonly ChainNode[];
  private readonly checked = new Set<ChainNode>();
  private readonly running = { linked: 0, unknown: 0 };
  private second = 0;
  private inSecond = 0;

  constructor(chain: LookupChain['chain'], nodes: readonly ChainNode[]) {
    this.chain = chain;
    this.nodes = nodes;
  }

  /** @throws PublicError TOO_MANY_REQUESTS_ERROR */
  async read(contract: string, isLinked: boolean, nowMs: number): Promise<TokenRecord | null> {
    const kind = isLinked ? 'linked' : 'unknown';
    if (!this.isAdmitted(kind, nowMs)) {
      const message = 'Too many contracts that are not known are looked up. Send the request again later.';
      throw new PublicError('TOO_MANY_REQUESTS_ERROR', { message, retryAfterS: RETRY_AFTER_S });
    }
    this.running[kind]++;
    try {
      return await this.describe(contract);
    } finally {
      this.running[kind]--;
    }
  }

  private isAdmitted(kind: 'linked' | 'unknown', nowMs: number): boolean {
    if (kind === 'linked') return this.running.linked < LINKED_MAX;
    const second = Math.floor(nowMs / 1_000);
    if (second !== this.second) [this.second, this.inSecond] = [second, 0];
    if (this.running.unknown >= UNKNOWN_MAX || this.inSecond >= UNKNOWN_PER_SECOND) return false;
    this.inSecond++;
    return true;
  }

  private async describe(contract: string): Promise<TokenRecord | null> {
    let last: NodeFault = new NodeFault('unreachable', 'the chain has no node');
    for (const node of this.nodes)
      try {
        await this.check(node);
        return await describeErc20(node, this.chain.name, contract);
      } catch (fault) {
        if (!(fault instanceof NodeFault)) throw fault;
        last = fault;
      }
    throw last;
  }

  /** The same address of another chain is another contract. */
  private async check(node: ChainNode): Promise<void> {
    if (this.checked.has(node)) return;
    const given = await node.chainId();
    if (given !== this.chain.chainId) throw new NodeFault('other-chain', `it is a node of chain ${given}`);
    this.checked.add(node);
  }
}

/** Builds the look-up. What was found, and that nothing was found, is remembered for a while. */
export function createTokenLookup(parts: TokenLookupParts): TokenLookup {
  const { isLinked, onLookup, wallClockMs } = parts;
  const known = new Map<string, Known>();
  const running = new Map<string, Promise<TokenRow | null>>();
  const chains = new Map(
    parts.chains.map((chain) => {
      const toNode = (url: string, index: number) => parts.createNode({ name: `${chain.name}/${index + 1}`, url });
      return [chain.name, new LookupChain(chain, chain.urls.map(toNode))];
    }),
  );
  const keep = (key: string, entry: Omit<Known, 'untilMs'>, forMs: number) => {
    known.delete(key);
    if (known.size >= KNOWN_MAX) known.delete(known.keys().next().value!);
    known.set(key, { ...entry, untilMs: wallClockMs() + forMs });
  };
  const lookUp = async (chain: LookupChain, name: string, contract: string): Promise<TokenRow | null> => {
    const key = `${name} ${contract}`;
    try {
      const record = await chain.read(contract, isLinked({ chain: name, contractAddress: contract }), wallClockMs());
      const token = record && toRow(record, known.get(key)?.token ?? null, wallClockMs());
      keep(key, { token, fault: null }, token === null ? NONE_MS : TOKEN_MS);
      onLookup(token === null ? 'none' : 'token');
      return token;
    } catch (fault) {
      // A refusal is no answer about the contract.
      if (!(fault instanceof PublicError)) keep(key, { token: known.get(key)?.token ?? null, fault }, FAULT_MS);
      onLookup(fault instanceof PublicError ? 'refused' : 'failed');
      throw fault;
    }
  };
  return {
    find: async (name, contract) => {
      const chain = chains.get(name);
      if (chain === undefined) return null;
      const key = `${name} ${contract}`;
      const entry = known.get(key);
      if (entry !== undefined && entry.untilMs > wallClockMs()) {
        if (entry.fault !== null) throw entry.fault;
        return entry.token;
      }
      const begun = running.get(key) ?? lookUp(chain, name, contract).finally(() => running.delete(key));
      running.set(key, begun);
      return begun;
    },
  };
}

/** A token that is still the same keeps its time, so that its entity tag stays too. */
function toRow(record: TokenRecord, before: TokenRow | null, nowMs: number): TokenRow {
  const row = toTokenRow(record, { updatedAt: nowMs * 1_000, partition: 0, offset: 0, loggedAtMs: nowMs });
  const isSame =
    before !== null && before.name === row.name && before.symbol === row.symbol && before.decimals === row.decimals;
  return isSame ? before : row;
}
