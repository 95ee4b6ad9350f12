import { ADDRESS_EXPECTED } from '@playline/contracts';
import { expect, it } from 'vitest';
import { CHAIN, expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';
import { addressOf } from '../../test/rows.ts';

it.each([
  '0x',
  addressOf(2).slice(2),
  `${addressOf(2)}0`,
  addressOf(2).slice(0, -1),
  '0xg'.padEnd(42, '0'),
  '%00',
  'a%2Fb',
  '0X'.padEnd(42, '0'),
])('GET token answers 400 to %s, which is no address', async (address) => {
  const answer = await (await openChainApi()).get(`/${CHAIN.name}/tokens/${address}`);
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR', {
    errors: [{ field: 'contract_address', message: `contract_address must be ${ADDRESS_EXPECTED}` }],
  });
});

it('GET token answers 400 to a path that is not percent-encoded UTF-8', async () => {
  const answer = await (await openChainApi()).get(`/${CHAIN.name}/tokens/%ff`);
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR');
});
