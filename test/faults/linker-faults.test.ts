import { describe, it } from 'vitest';
import { redisAwayFromLinker, redisWiped } from './linker-redis.ts';
import { prepareTrials, TRIAL_MAX_MS } from './suite.ts';
import { oldEventKept } from './writer-old-event.ts';

describe('behind the log', () => {
  const tryIt = prepareTrials();
  const scenarios = [redisAwayFromLinker, redisWiped, oldEventKept];
  it.each(scenarios)('$title (fault $fault)', { timeout: TRIAL_MAX_MS }, tryIt);
});
