import {
  type ChainNode,
  type ConfiguredChain,
  describeErc20,
  NodeFault,
  type TokenRow,
  toTokenRow,
} from '@playline/chain';
import type { TokenRecord } from '@playline/contracts';
import { PublicError } from '@playline/errors';

/** Looks up tokens without transfers on chain nodes. */
export interface TokenLookup {
  /**
   * Returns null if the contract is not an ERC-20 token or the chain has no nodes. @param caller key or client address
   * @throws PublicError TOO_MANY_REQUESTS_ERROR; NodeFault if no node responds
   */
  find(chain: string, contract: string, caller: string): Promise<TokenRow | null>;
}

export interface TokenLookupParts {
  readonly chains: readonly Pick<ConfiguredChain, 'name' | 'chainId' | 'urls'>[];
  /** @param name must not contain the URL, which may be secret */
  readonly createNode: (node: { name: string; url: string }) => ChainNode;
  /** Returns true if a project has linked the contract. */
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

/** Token metadata rarely changes. */
const TOKEN_TTL_MS = 600_000;
/** A newly deployed contract is found within a minute. */
const NO_TOKEN_TTL_MS = 60_000;
const FAULT_TTL_MS = 5_000;
/** The cache uses about 10 MB. */
const CACHED_MAX = 10_000;
/** Concurrent lookups per chain. Anyone can request any address, so linked contracts have a separate limit. */
const UNLINKED_MAX = 8;
const LINKED_MAX = 4;
/** A lookup makes six calls to a node. */
const UNLINKED_PER_SECOND = 10;
/** Limits per caller: burst, refill interval, concurrency. */
const CALLER_BURST = 10;
const CALLER_REFILL_MS = 5_000;
const CALLER_RUNNING_MAX = 2;
/** Reserved for callers that were idle, so that a few dozen busy callers cannot use up the limit. */
const RESERVED_PER_SECOND = 3;
const IDLE_MS = 30_000;
/** The caller states use about 2 MB. */
const CALLERS_MAX = 10_000;

interface CallerState {
  remaining: number;
  atMs: number;
  running: number;
}

class LookupChain {
  private readonly chain: TokenLookupParts['chains'][number];
  private readonly nodes: readonly ChainNode[];
  private readonly checkedNodes = new Set<ChainNode>();
  private readonly callers = new Map<string, CallerState>();
  private readonly running = { linked: 0, unlinked: 0 };
  private second = 0;
  private startedInSecond = 0;

  constructor(chain: LookupChain['chain'], nodes: readonly ChainNode[]) {
    this.chain = chain;
    this.nodes = nodes;
  }

  /** Reserves a lookup of an unlinked contract. Returns a release function. @throws PublicError if limited */
  reserve(caller: string, nowMs: number): () => void {
    const isIdle = nowMs - (this.callers.get(caller)?.atMs ?? Number.NEGATIVE_INFINITY) >= IDLE_MS;
    const state = this.refill(caller, nowMs);
    const second = Math.floor(nowMs / 1_000);
    if (second !== this.second) [this.second, this.startedInSecond] = [second, 0];
    if (state.remaining < 1) throw tooMany(Math.ceil(((1 - state.remaining) * CALLER_REFILL_MS) / 1_000));
    const perSecond = isIdle ? UNLINKED_PER_SECOND : UNLINKED_PER_SECOND - RESERVED_PER_SECOND;
    const isFull = this.running.unlinked >= UNLINKED_MAX || this.startedInSecond >= perSecond;
    if (isFull || state.running >= CALLER_RUNNING_MAX) throw tooMany();
    this.startedInSecond++;
    state.remaining--;
    state.running++;
    this.running.unlinked++;
    return () => {
      state.running--;
      this.running.unlinked--;
    };
  }

  /** Reserves a lookup of a linked contract. @throws PublicError TOO_MANY_REQUESTS_ERROR */
  reserveLinked(): () => void {
    if (this.running.linked >= LINKED_MAX) throw tooMany();
    this.running.linked++;
    return () => this.running.linked--;
  }

  private refill(caller: string, nowMs: number): CallerState {
    const state = this.callers.get(caller) ?? { remaining: CALLER_BURST, atMs: nowMs, running: 0 };
    state.remaining = Math.min(CALLER_BURST, state.remaining + Math.max(0, nowMs - state.atMs) / CALLER_REFILL_MS);
    state.atMs = nowMs;
    // Reinserts the caller, so that the map evicts the least recently used one.
    this.callers.delete(caller);
    if (this.callers.size >= CALLERS_MAX) this.callers.delete(this.callers.keys().next().value!);
    this.callers.set(caller, state);
    return state;
  }

  /** @throws NodeFault if no node responds */
  async describe(contract: string): Promise<TokenRecord | null> {
    let lastFault: NodeFault = new NodeFault('unreachable', 'the chain has no node');
    for (const node of this.nodes)
      try {
        await this.check(node);
        return await describeErc20(node, this.chain.name, contract);
      } catch (fault) {
        if (!(fault instanceof NodeFault)) throw fault;
        lastFault = fault;
      }
    throw lastFault;
  }

  /** Rejects a node for another chain, where the same address is a different contract. */
  private async check(node: ChainNode): Promise<void> {
    if (this.checkedNodes.has(node)) return;
    const chainId = await node.chainId();
    if (chainId !== this.chain.chainId) throw new NodeFault('other-chain', `the node belongs to chain ${chainId}`);
    this.checkedNodes.add(node);
  }
}

function tooMany(retryAfterS = 1): PublicError {
  const message = 'Too many unknown contracts are being looked up. Try again later.';
  return new PublicError('TOO_MANY_REQUESTS_ERROR', { message, retryAfterS });
}

/** Caches tokens, contracts that are not tokens, and failures. */
export function createTokenLookup(parts: TokenLookupParts): TokenLookup {
  const { isLinked, onLookup, wallClockMs } = parts;
  const cache = new Map<string, CachedToken>();
  const running = new Map<string, Promise<TokenRow | null>>();
  const chains = new Map(
    parts.chains.map((chain) => {
      const toNode = (url: string, index: number) => parts.createNode({ name: `${chain.name}/${index + 1}`, url });
      return [chain.name, new LookupChain(chain, chain.urls.map(toNode))];
    }),
  );
  const store = (key: string, entry: Omit<CachedToken, 'untilMs'>, ttlMs: number) => {
    cache.delete(key);
    if (cache.size >= CACHED_MAX) cache.delete(cache.keys().next().value!);
    cache.set(key, { ...entry, untilMs: wallClockMs() + ttlMs });
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
      const token = record && toRow(record, cache.get(key)?.token ?? null, wallClockMs());
      store(key, { token, fault: null }, token === null ? NO_TOKEN_TTL_MS : TOKEN_TTL_MS);
      onLookup(token === null ? 'none' : 'token');
      return token;
    } catch (fault) {
      store(key, { token: cache.get(key)?.token ?? null, fault }, FAULT_TTL_MS);
      onLookup('failed');
      throw fault;
    }
  };
  return {
    find: async (name, contract, caller) => {
      const chain = chains.get(name);
      if (chain === undefined) return null;
      const key = `${name} ${contract}`;
      const entry = cache.get(key);
      if (entry !== undefined && entry.untilMs > wallClockMs()) {
        if (entry.fault !== null) throw entry.fault;
        return entry.token;
      }
      const pending = running.get(key);
      if (pending !== undefined) return pending;
      const release = reserve(chain, name, contract, caller);
      const lookup = find(chain, key, contract).finally(() => {
        release();
        running.delete(key);
      });
      running.set(key, lookup);
      return lookup;
    },
  };
}

/** An unchanged token keeps its `updatedAt`, and therefore its ETag. */
function toRow(record: TokenRecord, previous: TokenRow | null, nowMs: number): TokenRow {
  const row = toTokenRow(record, { updatedAt: nowMs * 1_000, partition: 0, offset: 0, loggedAtMs: nowMs });
  if (previous === null) return row;
  const { name, symbol, decimals } = previous;
  return name === row.name && symbol === row.symbol && decimals === row.decimals ? previous : row;
}
