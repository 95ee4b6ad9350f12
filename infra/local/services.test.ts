import { expect, test } from 'vitest';
import { chainSettings } from './chain.ts';
import { addressesOf, serviceOf } from './services.ts';
import { startStack } from './stack.ts';
import { testStackPaths } from './test/paths.ts';

test('the stack file lists the chains of the chain API only if the chain API is running', () => {
  const env = chainSettings({ cursorSecret: '00'.repeat(32) });
  const ports = { 'chain-api': 1, 'chain-api-admin': 2, 'event-writer-admin': 3, gateway: 4, 'gateway-admin': 5 };
  const services = [serviceOf('chain-api'), serviceOf('event-writer')];
  expect(addressesOf(services, { ports, env })).toEqual({
    chainApi: 'http://127.0.0.1:1',
    chains: [{ name: 'demo-chain', id: 'eip155:31337' }],
    admin: { 'chain-api': 'http://127.0.0.1:2', 'event-writer': 'http://127.0.0.1:3' },
  });
  const other = { ...env, CHAINS: '[{"name":"other","id":"eip155:1"}]' };
  expect(addressesOf(services, { ports, env: other }).chains).toEqual([{ name: 'other', id: 'eip155:1' }]);
  expect(addressesOf([serviceOf('gateway')], { ports, env })).toEqual({
    gateway: 'http://127.0.0.1:4',
    admin: { gateway: 'http://127.0.0.1:5' },
  });
});

test('startStack fails and suggests a fix if anvil cannot run and isLenient is not set', async () => {
  const { state: directory } = testStackPaths();
  const options = { directory, chain: true, chainProgram: `${directory}/nowhere` };
  await expect(startStack(options)).rejects.toThrow(/does not run on this machine \(ENOENT\)\. Remove node_modules/);
});
