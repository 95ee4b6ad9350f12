export * from './key-log.ts';
export * from './key-store.ts';
export * from './key-text.ts';
export * from './live-keys.ts';
export * from './logged-key-store.ts';
export * from './operations.ts';
export * from './rebuild.ts';
export * from './verifier.ts';
