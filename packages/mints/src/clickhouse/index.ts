export { openMintReader } from './mint-reader.ts';
export { openMintWriter } from './mint-writer.ts';
