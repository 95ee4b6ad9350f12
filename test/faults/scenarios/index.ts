import type { Scenario } from '../world/trial.ts';
import { hostileBodies, oneBadAmongMany } from './bodies.ts';
import { brokerAbsent, brokerKilled, brokerStopped, memoryBounded } from './broker.ts';
import { engineKilled, partitionsMove } from './crew.ts';
import {
  drainUnderLoad,
  drainWithHeldAnswers,
  gatewayKilledBeforeAnswer,
  gatewayKilledUnderLoad,
  limitStoreAway,
  registryAndLimitStoreAway,
  registryAway,
} from './gateway.ts';
import { leaderReplacedWhileWaiting, leadersMove } from './leaders.ts';
import { logShortenedUnseen, logShortenedWhileRead, oldEventKept } from './log.ts';
import { redisAwayFromLinker, redisLosesLastWrites, redisWiped, refusedConsentArrivesLate } from './redis.ts';
import { redisGoesBack } from './redis-goes-back.ts';

export const SCENARIOS: readonly Scenario[] = [
  ...[brokerAbsent, brokerStopped, brokerKilled, memoryBounded, gatewayKilledBeforeAnswer, gatewayKilledUnderLoad],
  ...[engineKilled, redisAwayFromLinker, redisWiped, redisLosesLastWrites],
  ...[registryAway, limitStoreAway, registryAndLimitStoreAway, oldEventKept, partitionsMove],
  ...[drainWithHeldAnswers, drainUnderLoad, hostileBodies, oneBadAmongMany],
  ...[leaderReplacedWhileWaiting, leadersMove, logShortenedWhileRead, logShortenedUnseen],
  ...[refusedConsentArrivesLate, redisGoesBack],
];
