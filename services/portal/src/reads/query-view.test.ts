import { ClickHouseFault, type QueryRows } from '@playline/stores';
import { expect, it } from 'vitest';
import { queryView } from './query-view.ts';

it('a query beyond the quota of its project is answered with 429 and a time to wait, not as a fault of the portal', async () => {
  const query: QueryRows = () => {
    throw new ClickHouseFault(500, '201', 'QUOTA_EXCEEDED');
  };
  const question = { view: 'portal_tokens', args: {}, columns: ['a'], rowsMax: 1, toRow: () => 1 };
  await expect(queryView(query, question)).rejects.toMatchObject({ code: 'TOO_MANY_REQUESTS_ERROR', retryAfterS: 10 });
});
