import type { Scenario } from '../world/trial.ts';
import { brokerAbsent, brokerKilled, brokerStopped } from './broker.ts';

/** Faults of the way from a client into the log. */
export const GATEWAY_SCENARIOS: readonly Scenario[] = [brokerAbsent, brokerStopped, brokerKilled];

/** Every fault that is tried on a running pipeline, in the order of the list. */
export const SCENARIOS: readonly Scenario[] = [...GATEWAY_SCENARIOS].sort((one, other) => one.fault - other.fault);
