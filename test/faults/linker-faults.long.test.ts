import { it } from 'vitest';
import { LINKER_SCENARIOS } from './scenarios/index.ts';
import { prepareTrials, TRIAL_MAX_MS } from './suite.ts';

const tryIt = prepareTrials();
it.each(LINKER_SCENARIOS)('$title (fault $fault)', { timeout: TRIAL_MAX_MS }, tryIt);
