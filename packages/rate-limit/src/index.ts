export * from './admit.ts';
export { Bucket, type Clock, createLocalLimiter, type LocalLimiter, type LocalLimiterOptions } from './bucket.ts';
export * from './shared-limiter.ts';
export * from './window-limiter.ts';
