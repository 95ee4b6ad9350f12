import { expect, it } from 'vitest';
import { CHAIN, expectEnvelope, openChainApi } from '../../test/open-chain-api.ts';
import { addressOf } from '../../test/rows.ts';

it('an address that has used up its calls gets 429 from both reads', async () => {
  const api = await openChainApi({ RATE_LIMIT_CALLS: 3 });
  const history = `/${CHAIN.name}/activity-history`;
  for (const path of [history, `/${CHAIN.name}/tokens/${addressOf(2)}`, `${history}?page_size=0`]) await api.get(path);
  const answer = await api.get(history);
  expect(answer.status).toBe(429);
  expect(answer.headers.get('retry-after')).toBe('300');
  await expectEnvelope(answer, 'TOO_MANY_REQUESTS_ERROR');
});
