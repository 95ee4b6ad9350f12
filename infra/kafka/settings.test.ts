import { TOPICS } from '@playline/contracts';
import { expect, it } from 'vitest';
import { allTopics, toSettings } from './apply.ts';

const LAG = 'min.compaction.lag.ms';

it('access topics retain superseded records for seven days, because the audit log is derived from every record', () => {
  const access = Object.values(TOPICS).filter(
    ({ name, cleanup }) => name.startsWith('access.') && cleanup === 'compact',
  );
  expect(access).toHaveLength(6);
  for (const topic of access) expect([topic.name, toSettings(topic, 1).get(LAG)]).toEqual([topic.name, '604800000']);
});

it('Playline does not manage the compaction lag of other topics', () => {
  const others = allTopics().filter(({ name }) => !name.startsWith('access.'));
  for (const topic of others) expect([topic.name, toSettings(topic, 1).has(LAG)]).toEqual([topic.name, false]);
});
