export * from './grant-calls.ts';
export * from './make-pair.ts';
export * from './operations.ts';
export * from './seal.ts';
export * from './signable-key.ts';
export * from './signer-public-key.ts';
