import { FRAME_BYTES, frameRecord, TOPICS, type TokenRecord, tokenCodec } from '@playline/contracts';
import { awaitStableBounds } from '@playline/stream';
import { createSchemaRegistry, openAtomicPublisher, openLogReader } from '@playline/stream/kafka';
import { type OwnStores, openOwnStores, testStores } from '@playline/testkit';
import { openTestChain, type TestChain } from '@playline/testkit/chain';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { type LogAccess, openLogAccess } from '../test/log-access.ts';
import { runMain } from '../test/run-main.ts';
import { runProgram } from '../test/run-program.ts';
import type { WritableLogSources } from '../writable-log.ts';
import { changeToken } from './tokens.ts';

const CHAIN = 'demo-chain';
const SECRET = 'a-secret-of-the-provider';
const UNREACHABLE = `http://other:${SECRET}@127.0.0.1:1/v3/${SECRET}?key=${SECRET}`;
const TOPIC = TOPICS.tokens.name;
let [contract, unpublished]: [string, string] = ['', ''];
let chain: TestChain;
let stores: OwnStores;
let log: LogAccess;
let environment: Readonly<Record<string, string>>;

beforeAll(async () => {
  chain = await openTestChain();
  const demo = await chain.deployDemo(chain.accounts[0]);
  [contract, unpublished] = [demo.erc20.toLowerCase(), demo.erc721.toLowerCase()];
  stores = await openOwnStores({ partitions: 3 });
  log = await openLogAccess(testStores().kafka);
  const nodes = [{ name: CHAIN, id: `eip155:${chain.id}`, urls: [chain.rpc] }];
  environment = { ...stores.environment, CHAIN_NODES: JSON.stringify(nodes) };
});
afterAll(async () => {
  await Promise.all([chain?.close(), log?.close()]);
  await stores?.close();
});

const bytesOf = (address: string) => Buffer.from(address.slice(2), 'hex');
const INITIAL: Omit<TokenRecord, 'contractAddress'> = {
  chain: CHAIN,
  rootContractAddress: null,
  symbol: 'OLD',
  decimals: 2,
  imageUrl: 'https://images.example/x.png',
  name: 'Old name',
  verificationStatus: 'unverified',
  isCanonical: true,
  rootChainId: 'eip155:1',
  bridgeUsed: null,
  traceId: '1'.repeat(32),
};
const publish = (token: TokenRecord) => {
  const topic = stores.prefix + TOPIC;
  const key = Buffer.from(`${token.chain} 0x${token.contractAddress.toString('hex')}`);
  return log.publish([{ topic, key, value: frameRecord(stores.schemaIdOf(topic), tokenCodec.encode(token)) }]);
};
const versions = async (address = contract) =>
  (await log.read(stores.prefix + TOPIC))
    .map(({ value }) => tokenCodec.decode(value!.subarray(FRAME_BYTES)))
    .filter(({ contractAddress }) => contractAddress.equals(bytesOf(address)));
/** Reads the last record of the token, once the brokers have completed all transactions. */
const last = async () => {
  await awaitStableBounds(log.reader, stores.prefix + TOPIC);
  return (await versions()).at(-1)!;
};

beforeEach(async () => {
  await publish({ ...INITIAL, contractAddress: bytesOf(contract) });
});

const run = (subcommand: string, address: string, ...more: string[]) =>
  runProgram(environment, ['chain', subcommand, '--chain', CHAIN, '--address', address, ...more]);
const verification = (status: string, address = contract) => run('verification', address, '--status', status);

it('chain verification publishes the status once, without changing other fields of the token', async () => {
  const before = (await versions()).length;
  const upperCase = contract.toUpperCase().replace('0X', '0x');
  const first = await run('verification', upperCase, '--status', 'verified');
  expect(first.code, first.err).toBe(EXIT.ok);
  expect(first.out).toContain('Old name (OLD), 2 decimals, verified: published');
  const { traceId, ...token } = await last();
  const { traceId: previousTraceId, ...current } = INITIAL;
  expect(token).toEqual({ ...current, contractAddress: bytesOf(contract), verificationStatus: 'verified' });
  expect(traceId).not.toBe(previousTraceId);
  expect((await verification('verified')).out).toContain('no change to publish');
  expect(await versions()).toHaveLength(before + 1);
});

it('chain refresh-token updates a token from its contract, and does not change its verification status', async () => {
  await verification('spam');
  const { code, out, err } = await run('refresh-token', contract, '--json');
  expect(code, err).toBe(EXIT.ok);
  expect(JSON.parse(out)).toMatchObject({ contract_address: contract, decimals: 18, published: true });
  const { name, symbol, verificationStatus, imageUrl } = await last();
  expect([name, symbol]).not.toContain('OLD');
  expect([verificationStatus, imageUrl]).toEqual(['spam', INITIAL.imageUrl]);
  expect(JSON.parse((await run('refresh-token', contract, '--json')).out)).toMatchObject({ published: false });
});

it('token commands do not publish unknown tokens or tokens whose contract returns no values', async () => {
  const unknown = await verification('verified', `0x${'9'.repeat(40)}`);
  expect(unknown).toMatchObject({ code: EXIT.failed, err: expect.stringContaining('token 0x9999') });
  const silentContract = chain.accounts[5]!.toLowerCase();
  await publish({ ...INITIAL, contractAddress: bytesOf(silentContract) });
  const silentResult = await run('refresh-token', silentContract);
  expect(silentResult).toMatchObject({
    code: EXIT.failed,
    err: expect.stringContaining('returns no name, symbol or decimals'),
  });
  expect(silentResult.err).not.toContain(chain.rpc);
  expect(await versions(silentContract)).toHaveLength(1);
  expect(await versions(unpublished)).toEqual([]);
});

/** Creates the context of the commands. @param beforeCommit called before the publisher commits */
function sourcesOf(beforeCommit?: () => Promise<void>): WritableLogSources {
  const brokers = testStores().kafka;
  return {
    openLog: async () => openLogReader({ brokers, clientId: 'test' }),
    openPublisher: (name) => openAtomicPublisher({ brokers, name, ...(beforeCommit && { beforeCommit }) }),
    schemas: createSchemaRegistry({ url: stores.environment.SCHEMA_REGISTRY_URL! }),
    topicPrefix: stores.prefix,
  };
}

it('the earlier of two concurrent commands for a token fails', async () => {
  const token = { chain: CHAIN, contract };
  const verify = () => changeToken(sourcesOf(), token, (current) => ({ ...current, verificationStatus: 'verified' }));
  const rename = (current: TokenRecord) => ({ ...current, name: 'Renamed' });
  // The later command runs after the earlier command has read the record.
  const lateChange = changeToken(sourcesOf(), token, async (current) => {
    await verify();
    return rename(current);
  });
  await expect(lateChange).rejects.toThrow('another command changed this token at the same time');
  expect(await last()).toMatchObject({ name: INITIAL.name, verificationStatus: 'verified' });
  // The later command runs after the earlier command has sent the record, but before the commit.
  await publish({ ...INITIAL, contractAddress: bytesOf(contract) });
  const sent = changeToken(
    sourcesOf(async () => void (await verify())),
    token,
    rename,
  );
  await expect(sent).rejects.toThrow(/at the same time|did not confirm/);
  expect(await last()).toMatchObject({ name: INITIAL.name, verificationStatus: 'verified' });
  await changeToken(sourcesOf(), token, rename);
  expect(await last()).toMatchObject({ name: 'Renamed', verificationStatus: 'verified' });
});

it('a token command waits for open transactions before it reads the current record', async () => {
  const begun = Promise.withResolvers<void>();
  const stuck = Promise.withResolvers<void>();
  const token = { chain: CHAIN, contract };
  const key = `${CHAIN} ${contract}`;
  const otherPublisher = await openAtomicPublisher({
    brokers: testStores().kafka,
    name: `${stores.prefix}other`,
    beforeCommit: async () => {
      begun.resolve();
      await stuck.promise;
    },
  });
  const topic = stores.prefix + TOPIC;
  const value = frameRecord(
    stores.schemaIdOf(topic),
    tokenCodec.encode({ ...INITIAL, contractAddress: bytesOf(contract), name: 'From the open transaction' }),
  );
  const open = otherPublisher.publish([{ topic, key: Buffer.from(key), value, headers: {} }]);
  await begun.promise;
  let hasChanged = false;
  const changed = changeToken(sourcesOf(), token, (current) => {
    hasChanged = true;
    return { ...current, verificationStatus: 'inactive' };
  });
  await log.read(topic);
  expect(hasChanged).toBe(false);
  stuck.resolve();
  await Promise.all([open, changed]);
  expect(await last()).toMatchObject({ name: 'From the open transaction', verificationStatus: 'inactive' });
  await otherPublisher.close();
});

const statusBy =
  (run: typeof runMain) =>
  async (chains: readonly object[], ...args: string[]) => {
    const settings = { ...stores.environment, CHAIN_NODES: JSON.stringify(chains) };
    const { code, out, err } = await run(settings, ['chain', 'status', ...args]);
    expect(out + err).not.toContain(SECRET);
    expect(out + err).not.toContain(chain.rpc);
    return { code, out: out.trim().split('\n'), err };
  };
const status = statusBy(runProgram);
const chainOf = (name: string, number: number, ...urls: string[]) => ({ name, id: `eip155:${number}`, urls });

it('chain status exits with code 3 if a chain has no reachable node, and still lists all chains', async () => {
  const chains = [chainOf('unreachable-chain', 5, UNREACHABLE), chainOf('demo-chain', chain.id, chain.rpc)];
  const { code, out, err } = await statusBy(runMain)(chains);
  expect(code, err).toBe(EXIT.unreachable);
  expect(out).toEqual([
    'unreachable-chain: no node responds, indexed none; unreachable-chain/1 unusable (cannot reach the node)',
    expect.stringMatching(
      /^demo-chain: latest block (\d+), final \d+, indexed none, \d+ behind; demo-chain\/1 at block \1$/,
    ),
  ]);
  const head = Number(await chain.client.getBlockNumber());
  const json = (await status(chains, '--json')).out.map((line) => JSON.parse(line));
  expect(json).toMatchObject([
    { chain: 'unreachable-chain', reachable: false, head: null, nodes: [{ name: 'unreachable-chain/1', head: null }] },
    { chain: 'demo-chain', reachable: true, head, nodes: [{ name: 'demo-chain/1', head, fault: null }] },
  ]);
});

it('chain status exits with code 0 if a chain has a reachable node, and reports a node of another chain', async () => {
  const [reachable, foreign] = [
    chainOf('demo-chain', chain.id, UNREACHABLE, chain.rpc),
    chainOf('other-chain', 7, chain.rpc),
  ];
  const { code, out } = await status([reachable]);
  expect(code).toBe(EXIT.ok);
  expect(out[0]).toMatch(
    /^demo-chain: latest block (\d+), .*demo-chain\/1 unusable \(.*\), demo-chain\/2 at block \1$/,
  );
  const foreignStatus = await status([foreign]);
  expect(foreignStatus.code).toBe(EXIT.unreachable);
  expect(foreignStatus.out[0]).toContain(`other-chain/1 unusable (it is a node of chain ${chain.id}, not of chain 7)`);
});
