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

/** Tokens without transfers. */
export interface TokenLookup {
  /**
   * null for a contract that is no ERC-20, and without nodes. @param caller key or client address @throws PublicError
   * TOO_MANY_REQUESTS_ERROR; NodeFault when no node answers
   */
  find(chain: string, contract: string, caller: string): Promise<TokenRow | null>;
}

export interface TokenLookupParts {
  readonly chains: readonly Pick<ChainOfSettings, 'name' | 'chainId' | 'urls'>[];
  /** @param name must not show the address */
  readonly createNode: (node: { name: string; url: string }) => ChainNode;
  /** By a project. */
  readonly isLinked: (contract: { chain: string; contractAddress: string }) => boolean;
  readonly onLookup: (outcome: LookupOutcome) => void;
  readonly wallClockMs: () => number;
}

export type LookupOutcome = 'token' | 'none' | 'failed' | 'refused';

interface CachedToken {
  readonly token: TokenRow | null;
  readonly fault: unknown;
  readonly untilMs: number;
}

/** Contracts rarely change their names. */
const TOKEN_MS = 600_000;
/** A new contract is found after a minute at most. */
const NONE_MS = 60_000;
const FAULT_MS = 5_000;
/** Some 10 MB. */
const CACHED_MAX = 10_000;
/** At a time, per chain. Anyone can request any address, so linked contracts have their own. */
const UNKNOWN_MAX = 8;
const LINKED_MAX = 4;
/** Each lookup is six calls of a node. */
const UNKNOWN_PER_SECOND = 10;
/** Of one caller: burst, refill, concurrent. */
const CALLER_LOOKUPS = 10;
const CALLER_REGAINS_MS = 5_000;
const CALLER_RUNNING_MAX = 2;
/** For callers that were idle: a few dozen others could use up everything. */
const RESERVED_PER_SECOND = 3;
const NEW_AFTER_MS = 30_000;
/** Some 2 MB. */
const CALLERS_MAX = 10_000;

interface Share {
  left: number;
  atMs: number;
  running: number;
}

class LookupChain {
  private readonly chain: TokenLookupParts['chains'][number];
  private readonly nodes: readonly ChainNode[];
  private readonly checked = new Set<ChainNode>();
  private readonly shares = new Map<string, Share>();
  private readonly running = { linked: 0, unknown: 0 };
  private second = 0;
  private inSecond = 0;

  constructor(chain: LookupChain['chain'], nodes: readonly ChainNode[]) {
    this.chain = chain;
    this.nodes = nodes;
  }

  /** Of an unlinked contract. @returns ends the reservation @throws PublicError TOO_MANY_REQUESTS_ERROR */
  reserve(caller: string, nowMs: number): () => void {
    const isNew = nowMs - (this.shares.get(caller)?.atMs ?? Number.NEGATIVE_INFINITY) >= NEW_AFTER_MS;
    const share = this.shareOf(caller, nowMs);
    const second = Math.floor(nowMs / 1_000);
    if (second !== this.second) [this.second, this.inSecond] = [second, 0];
    if (share.left < 1) throw tooMany(Math.ceil(((1 - share.left) * CALLER_REGAINS_MS) / 1_000));
    const perSecond = isNew ? UNKNOWN_PER_SECOND : UNKNOWN_PER_SECOND - RESERVED_PER_SECOND;
    const isFull = this.running.unknown >= UNKNOWN_MAX || this.inSecond >= perSecond;
    if (isFull || share.running >= CALLER_RUNNING_MAX) throw tooMany();
    this.inSecond++;
    share.left--;
    share.running++;
    this.running.unknown++;
    return () => {
      share.running--;
      this.running.unknown--;
    };
  }

  /** Of a linked contract. @throws PublicError TOO_MANY_REQUESTS_ERROR */
  reserveLinked(): () => void {
    if (this.running.linked >= LINKED_MAX) throw tooMany();
    this.running.linked++;
    return () => this.running.linked--;
  }

  private shareOf(caller: string, nowMs: number): Share {
    const share = this.shares.get(caller) ?? { left: CALLER_LOOKUPS, atMs: nowMs, running: 0 };
    share.left = Math.min(CALLER_LOOKUPS, share.left + Math.max(0, nowMs - share.atMs) / CALLER_REGAINS_MS);
    share.atMs = nowMs;
    // Keeps the latest.
    this.shares.delete(caller);
    if (this.shares.size >= CALLERS_MAX) this.shares.delete(this.shares.keys().next().value!);
    this.shares.set(caller, share);
    return share;
  }

  /** @throws NodeFault when no node answers */
  async describe(contract: string): Promise<TokenRecord | null> {
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

function tooMany(retryAfterS = 1): PublicError {
  const message = 'Too many unknown contracts are being looked up. Try again later.';
  return new PublicError('TOO_MANY_REQUESTS_ERROR', { message, retryAfterS });
}

/** Caches results, also negative ones. */
export function createTokenLookup(parts: TokenLookupParts): TokenLookup {
  const { isLinked, onLookup, wallClockMs } = parts;
  const known = new Map<string, CachedToken>();
  const running = new Map<string, Promise<TokenRow | null>>();
  const chains = new Map(
    parts.chains.map((chain) => {
      const toNode = (url: string, index: number) => parts.createNode({ name: `${chain.name}/${index + 1}`, url });
      return [chain.name, new LookupChain(chain, chain.urls.map(toNode))];
    }),
  );
  const keep = (key: string, entry: Omit<CachedToken, 'untilMs'>, forMs: number) => {
    known.delete(key);
    if (known.size >= CACHED_MAX) known.delete(known.keys().next().value!);
    known.set(key, { ...entry, untilMs: wallClockMs() + forMs });
  };
  const reserve = (chain: LookupChain, name: string, contractAddress: string, caller: string) => {
    try {
      if (isLinked({ chain: name, contractAddress })) return chain.reserveLinked();
      return chain.reserve(caller, wallClockMs());
    } catch (refusal) {
      onLookup('refused');
      throw refusal;
    }
  };
  const find = async (chain: LookupChain, key: string, contract: string): Promise<TokenRow | null> => {
    try {
      const record = await chain.describe(contract);
      const token = record && toRow(record, known.get(key)?.token ?? null, wallClockMs());
      keep(key, { token, fault: null }, token === null ? NONE_MS : TOKEN_MS);
      onLookup(token === null ? 'none' : 'token');
      return token;
    } catch (fault) {
      keep(key, { token: known.get(key)?.token ?? null, fault }, FAULT_MS);
      onLookup('failed');
      throw fault;
    }
  };
  return {
    find: async (name, contract, caller) => {
      const chain = chains.get(name);
      if (chain === undefined) return null;
      const key = `${name} ${contract}`;
      const entry = known.get(key);
      if (entry !== undefined && entry.untilMs > wallClockMs()) {
        if (entry.fault !== null) throw entry.fault;
        return entry.token;
      }
      const begun = running.get(key);
      if (begun !== undefined) return begun;
      const end = reserve(chain, name, contract, caller);
      const lookup = find(chain, key, contract).finally(() => {
        end();
        running.delete(key);
      });
      running.set(key, lookup);
      return lookup;
    },
  };
}

/** An unchanged token keeps its time, and with it its entity tag. */
function toRow(record: TokenRecord, before: TokenRow | null, nowMs: number): TokenRow {
  const row = toTokenRow(record, { updatedAt: nowMs * 1_000, partition: 0, offset: 0, loggedAtMs: nowMs });
  const isSame =
    before !== null && before.name === row.name && before.symbol === row.symbol && before.decimals === row.decimals;
  return isSame ? before : row;
}
