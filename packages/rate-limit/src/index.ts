export * from './admit.ts';
export * from './balances.ts';
export { Bucket, type Clock } from './bucket.ts';
export * from './local-limiter.ts';
export * from './policy.ts';
export * from './shared-limiter.ts';
export * from './window-limiter.ts';
