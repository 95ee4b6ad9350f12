import { ADDRESS_EXPECTED } from '@playline/contracts';
import { describe, expect, it } from 'vitest';
import { CHAIN, expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';
import { addressOf } from '../../test/rows.ts';

describe('400', () => {
  it.each([
    '0x',
    addressOf(2).slice(2),
    `${addressOf(2)}0`,
    addressOf(2).slice(0, -1),
    '0xg'.padEnd(42, '0'),
    '%00',
    'a%2Fb',
    '0X'.padEnd(42, '0'),
  ])('answers %s, which is no address, and names the parameter', async (address) => {
    const answer = await (await openChainApi()).get(`/${CHAIN.name}/tokens/${address}`);
    expect(answer.status).toBe(400);
    await expectEnvelope(answer, 'VALIDATION_ERROR', {
      errors: [{ field: 'contract_address', message: `contract_address must be ${ADDRESS_EXPECTED}` }],
    });
  });

  it('answers a path that is not percent-encoded UTF-8', async () => {
    const answer = await (await openChainApi()).get(`/${CHAIN.name}/tokens/%ff`);
    expect(answer.status).toBe(400);
    await expectEnvelope(answer, 'VALIDATION_ERROR');
  });
});
