export { createScanner, type Scanner, UNDECIDED } from './batch.ts';
export { type BodySource, type ReadDocument, readDocument } from './document.ts';
