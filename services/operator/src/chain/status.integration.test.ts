import { type OwnStores, openOwnStores } from '@playline/testkit';
import { openTestChain, type TestChain } from '@playline/testkit/chain';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EXIT } from '../command.ts';
import { runMain } from '../test/run-main.ts';
import { runProgram } from '../test/run-program.ts';

const SECRET = 'a-secret-of-the-provider';
/** No server listens here. */
const AWAY = `http://other:${SECRET}@127.0.0.1:1/v3/${SECRET}?key=${SECRET}`;
let chain: TestChain;
let stores: OwnStores;

beforeAll(async () => {
  [chain, stores] = await Promise.all([openTestChain(), openOwnStores()]);
  await chain.mine(9);
});
afterAll(async () => {
  await Promise.all([chain?.close(), stores?.close()]);
});

const statusBy =
  (run: typeof runMain) =>
  async (chains: readonly object[], ...args: string[]) => {
    const environment = { ...stores.environment, CHAIN_NODES: JSON.stringify(chains) };
    const { code, out, err } = await run(environment, ['chain', 'status', ...args]);
    expect(out + err).not.toContain(SECRET);
    expect(out + err).not.toContain(chain.rpc);
    return { code, out: out.trim().split('\n'), err };
  };
const status = statusBy(runProgram);
const chainOf = (name: string, number: number, ...urls: string[]) => ({ name, id: `eip155:${number}`, urls });

it('a chain whose node is away is listed with the others, and the exit code reports it', async () => {
  const chains = [chainOf('away-chain', 5, AWAY), chainOf('demo-chain', chain.id, chain.rpc)];
  const { code, out, err } = await statusBy(runMain)(chains);
  expect(code, err).toBe(EXIT.unreachable);
  expect(out).toEqual([
    'away-chain: no node answers, indexed none; away-chain/1 cannot be used (it cannot be reached)',
    expect.stringMatching(
      /^demo-chain: latest block 9, final \d+, indexed none, \d+ behind; demo-chain\/1 at block 9$/,
    ),
  ]);
  const json = (await status(chains, '--json')).out.map((line) => JSON.parse(line));
  expect(json).toMatchObject([
    { chain: 'away-chain', reachable: false, head: null, nodes: [{ name: 'away-chain/1', head: null }] },
    { chain: 'demo-chain', reachable: true, head: 9, nodes: [{ name: 'demo-chain/1', head: 9, fault: null }] },
  ]);
});

it('each of several nodes is listed; one that is away or of another chain is no fault of the chain', async () => {
  const [own, away] = [chainOf('demo-chain', chain.id, AWAY, chain.rpc), chainOf('other-chain', 7, chain.rpc)];
  const { code, out } = await status([own]);
  expect(code).toBe(EXIT.ok);
  expect(out[0]).toMatch(
    /^demo-chain: latest block 9, .*demo-chain\/1 cannot be used \(.*\), demo-chain\/2 at block 9$/,
  );
  const other = await status([away]);
  expect(other.code).toBe(EXIT.unreachable);
  expect(other.out[0]).toContain(`other-chain/1 cannot be used (it is a node of chain ${chain.id}, not of 7)`);
});
