export type { OpenFences } from './environment-fences.ts';
export * from './event.ts';
export * from './filter.ts';
export * from './hub.ts';
export { LIVE_LIMITS, type LiveLimits } from './limits.ts';
export type { Looker } from './looker.ts';
export * from './open-live.ts';
export type { LiveTopics } from './read-entries.ts';
