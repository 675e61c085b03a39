#include "offload/turn_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace weir {
namespace {

TEST(TurnQueueTest, Take_Alone_NeedsNoWait) {
  TurnQueue queue;
  TurnQueue::Turn turn(queue);
  turn.Take();
  EXPECT_FALSE(turn.StepAside());
}

TEST(TurnQueueTest, Take_InOrderOfArrival_WhoeverCallsFirst) {
  TurnQueue queue;
  std::vector<int> order;
  auto holder = std::make_unique<TurnQueue::Turn>(queue);
  TurnQueue::Turn* arrivals[3];
  for (auto& arrival : arrivals) arrival = new TurnQueue::Turn(queue);
  holder->Take();
  std::vector<std::thread> threads;
  for (int i : {2, 1, 0}) {
    threads.emplace_back([&, i] {
      arrivals[i]->Take();
      order.push_back(i);  // only the holder of the turn writes
      delete arrivals[i];
    });
  }
  holder.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST(TurnQueueTest, StepAside_OnlyAnElderIsLeft_IsRefused) {
  TurnQueue queue;
  auto elder = std::make_unique<TurnQueue::Turn>(queue);
  TurnQueue::Turn younger(queue);
  elder->Take();
  std::thread thread([&] {
    younger.Take();
    EXPECT_FALSE(younger.StepAside());
  });
  elder.reset();
  thread.join();
}

TEST(TurnQueueTest, StepAside_YoungerQueues_ComesBackWhenThatOneIsDone) {
  TurnQueue queue;
  TurnQueue::Turn elder(queue);
  auto younger = std::make_unique<TurnQueue::Turn>(queue);
  elder.Take();
  bool worked = false;  // written and read by holders of the turn only
  std::thread thread([&] {
    younger->Take();
    worked = true;
    younger.reset();
  });
  EXPECT_TRUE(elder.StepAside());
  EXPECT_TRUE(worked);
  thread.join();
  EXPECT_FALSE(elder.StepAside());
}

TEST(TurnQueueTest, StepAside_ManyThreads_AllGetDone) {
  TurnQueue queue;
  std::atomic<int> inside{0}, done{0};
  auto work = [&](int steps) {
    for (int i = 0; i < 50; ++i) {
      TurnQueue::Turn turn(queue);
      turn.Take();
      EXPECT_EQ(inside.fetch_add(1), 0);
      for (int step = 0; step < steps; ++step) {
        inside.fetch_sub(1);
        turn.StepAside();
        EXPECT_EQ(inside.fetch_add(1), 0);
      }
      inside.fetch_sub(1);
    }
    ++done;
  };
  std::vector<std::thread> threads;
  for (int steps : {0, 1, 2, 3}) threads.emplace_back(work, steps);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 4);
}

}  // namespace
}  // namespace weir
