import { it } from 'vitest';
import { GATEWAY_SCENARIOS } from './scenarios/index.ts';
import { prepareTrials, TRIAL_MAX_MS } from './suite.ts';

const tryIt = prepareTrials();
it.each(GATEWAY_SCENARIOS)('$title (fault $fault)', { timeout: TRIAL_MAX_MS }, tryIt);
