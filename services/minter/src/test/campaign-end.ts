import { activityIdOf } from '@playline/chain';
import type { MintStateRecord } from '@playline/contracts';
import { toAttemptKey } from '../lane/failed-attempts.ts';
import { toReferenceKey } from '../lane/mint-ledger.ts';
import { mintedTokensOf } from '../steps/settle-nonces.ts';
import type { CampaignTraffic } from './campaign-traffic.ts';
import type { MemoryChain } from './memory-chain.ts';
import type { MemoryMintLog } from './memory-mint-log.ts';
import { createMemorySigner } from './memory-node.ts';

export interface EndReport {
  readonly references: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly tokens: number;
  readonly nonces: number;
  readonly variants: number;
}

const hex = (bytes: Buffer) => `0x${bytes.toString('hex')}`;

function assertThat(isTrue: boolean, message: () => string): void {
  if (!isTrue) throw new Error(message());
}

/** Checks that each reference id has one token or one clear failure, and that the states match the chain. */
export function checkEnd(world: { traffic: CampaignTraffic; log: MemoryMintLog; chain: MemoryChain }): EndReport {
  const { traffic, log, chain } = world;
  const states = traffic.lastStates();
  const references = new Map<string, MintStateRecord[]>();
  for (const state of states)
    references.set(toReferenceKey(state), [...(references.get(toReferenceKey(state)) ?? []), state]);
  for (const { request } of traffic.requests)
    assertThat(references.has(toReferenceKey(request)), () => `${request.referenceId} was lost`);
  expectSettledOnce(log);
  const succeeded = states.filter(({ status }) => status === 'succeeded');
  const failed = states.filter(({ status }) => status === 'failed');
  for (const [reference, attempts] of references) {
    const done = attempts.filter(({ status }) => status === 'succeeded');
    assertThat(done.length <= 1, () => `${reference} succeeded ${done.length} times`);
    assertThat(
      attempts.every(({ status }) => status !== 'pending'),
      () => `${reference} is still pending`,
    );
  }
  for (const { error, referenceId } of failed)
    assertThat(error !== null && error !== '', () => `${referenceId} failed without an error message`);
  expectSameTokens(succeeded, chain);
  for (const state of succeeded) expectCorrectActivity(state, chain);
  const { nonces, variants } = expectSameCalls(log);
  const { length: tokens } = chain.head.state.tokens;
  return { references: references.size, succeeded: succeeded.length, failed: failed.length, tokens, nonces, variants };
}

function expectSettledOnce({ states }: MemoryMintLog): void {
  const settled = new Set<string>();
  for (const state of states) {
    assertThat(!settled.has(toAttemptKey(state)), () => `${state.referenceId} changed after it was settled`);
    if (state.status !== 'pending') settled.add(toAttemptKey(state));
  }
}

function expectSameTokens(succeeded: readonly MintStateRecord[], chain: MemoryChain): void {
  const reported = succeeded.map(({ contractAddress, tokenId, ownerAddress, amount }) =>
    [hex(contractAddress), tokenId, hex(ownerAddress), amount ?? '1'].join(' '),
  );
  const minted = chain.head.state.tokens.map((token) =>
    [token.contract, token.tokenId, token.owner, token.amount].join(' '),
  );
  const [one, other] = [reported.sort().join('\n'), minted.sort().join('\n')];
  assertThat(
    one === other,
    () => `the states contain ${reported.length} tokens, but the chain contains ${minted.length}`,
  );
}

function expectCorrectActivity(state: MintStateRecord, chain: MemoryChain): void {
  const transactionHash = hex(state.transactionHash!);
  const receipt = chain.receiptOf(transactionHash);
  assertThat(
    receipt?.isSuccess === true,
    () => `transaction ${transactionHash} for ${state.referenceId} is not on the chain`,
  );
  const tokens = mintedTokensOf(receipt!, hex(state.contractAddress)).filter(({ logIndex, item, tokenId, owner }) => {
    const id = activityIdOf({ chain: state.chain, transactionHash, logIndex, item });
    return id.equals(state.activityId!) && tokenId === state.tokenId && owner === hex(state.ownerAddress);
  });
  assertThat(tokens.length === 1, () => `the activity for ${state.referenceId} is not on the chain`);
}

function expectSameCalls({ transactions }: MemoryMintLog): { nonces: number; variants: number } {
  const { read } = createMemorySigner('');
  const calls = new Map<string, Set<string>>();
  const variants = transactions.filter(({ kind }) => kind === 'mint');
  for (const { signer, nonce, signedBytes } of variants) {
    const { to, data, gas } = read(signedBytes);
    const key = `${hex(signer)} ${nonce}`;
    calls.set(key, (calls.get(key) ?? new Set()).add(`${to} ${data} ${gas}`));
  }
  for (const [nonce, different] of calls)
    assertThat(different.size === 1, () => `variants of ${nonce} contain different calls`);
  return { nonces: calls.size, variants: variants.length };
}
