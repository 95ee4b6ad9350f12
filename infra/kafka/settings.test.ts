import { TOPICS } from '@playline/contracts';
import { expect, it } from 'vitest';
import { allTopics, toSettings } from './apply.ts';

const LAG = 'min.compaction.lag.ms';

it('access topics keep superseded records for seven days, because the audit is derived from every record', () => {
  const access = Object.values(TOPICS).filter(
    ({ name, cleanup }) => name.startsWith('access.') && cleanup === 'compact',
  );
  expect(access).toHaveLength(6);
  for (const topic of access) expect([topic.name, toSettings(topic, 1).get(LAG)]).toEqual([topic.name, '604800000']);
});

it('topics other than access topics have no compaction lag, so that the operator can set it', () => {
  const others = allTopics().filter(({ name }) => !name.startsWith('access.'));
  for (const topic of others) expect([topic.name, toSettings(topic, 1).has(LAG)]).toEqual([topic.name, false]);
});
