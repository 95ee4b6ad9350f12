import { expect, test } from 'vitest';
import { chainSettings } from './chain.ts';
import { addressesOf, portNamesOf, serviceOf, serviceSpec, servicesFor } from './services.ts';
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

test('a cluster has two processes of each service with a common group and separate addresses', () => {
  const services = servicesFor({ services: ['gateway', 'event-writer', 'portal'], cluster: true });
  const names = portNamesOf(services);
  const ports = Object.fromEntries(names.map((name, index) => [name, index + 1]));
  expect(addressesOf(services, { ports, env: {} })).toEqual({
    gateway: `http://127.0.0.1:${ports.gateway}`,
    portal: `http://localhost:${ports.portal}`,
    others: {
      'gateway-2': `http://127.0.0.1:${ports['gateway-2']}`,
      'portal-2': `http://localhost:${ports['portal-2']}`,
    },
    admin: Object.fromEntries(
      ['gateway', 'gateway-2', 'event-writer', 'event-writer-2', 'portal', 'portal-2'].map((name) => [
        name,
        `http://127.0.0.1:${ports[`${name}-admin`]}`,
      ]),
    ),
  });
  const setting = { ports, env: {}, signing: {}, analysts: {}, passwords: { reader: '', portal: '' } };
  const specs = services.map((service) => serviceSpec(testStackPaths(), service, setting));
  const settingsOf = (name: string) => specs.find((spec) => spec.name === name)?.env;
  expect(settingsOf('event-writer-2')?.CONSUMER_GROUP).toBe('event-writer');
  expect(settingsOf('gateway-2')?.GATEWAY_URL).toBe(`http://127.0.0.1:${ports.gateway}`);
  expect(settingsOf('portal-2')?.PORTAL_ORIGIN).toBe(`http://localhost:${ports['portal-2']}`);
});

test('startStack fails and suggests a fix if anvil cannot run and isLenient is not set', async () => {
  const { state: directory } = testStackPaths();
  const options = { directory, chain: true, chainProgram: `${directory}/nowhere` };
  await expect(startStack(options)).rejects.toThrow(/does not run on this machine \(ENOENT\)\. Remove node_modules/);
});
