export { applyTopics, type TopicsApplied, type TopicsTarget } from './apply.ts';
export { dropTopics } from './drop.ts';
export { mendKafkaTimer } from './timer.ts';
export { allTopics } from './topics.ts';
