export * from './key-store.ts';
export * from './key-text.ts';
export * from './operations.ts';
export * from './verifier.ts';
