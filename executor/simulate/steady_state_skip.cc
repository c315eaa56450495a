// Leaving periods out: how many, what moves, and what fills them.

#include <algorithm>

#include "executor/simulate/clock.h"
#include "executor/simulate/steady_state.h"

namespace plancast {

int32_t SteadyState::PeriodsAhead(const std::vector<Front>& fronts) {
  int32_t most = StreamCursor::kDone;
  for (int32_t e = 0; e < streams_.num_entities(); ++e) {
    most = std::min(most, PeriodsAhead(e, fronts[e]));
  }
  if (most < 1) return 0;
  // What is left goes beyond the clock by itself.
  if (period_ps_ > 0) {
    most = static_cast<int32_t>(std::min<int64_t>(most, (kLatestPs - events_.now()) / period_ps_));
  }
  return most;
}

int32_t SteadyState::PeriodsAhead(int32_t e, const Front& front) {
  const int32_t program = in_.ProgramOf(e), period = periods_.Of(program);
  if (front.first == StreamCursor::kDone || front.last - front.first > period) return 0;
  // What has gone ahead of the others did not do the same in every period.
  const ProgramIndex& index = in_.index.program(program);
  for (int stream = 0; stream < kNumStreams; ++stream) {
    if ((front.ahead >> stream & 1) != 0) continue;
    const int32_t at = streams_.cursor(CursorOf(e, stream)).instance;
    const auto begin = index.instances_of_streams.begin();
    const auto end = begin + index.stream_begin[stream + 1];
    const auto next = std::lower_bound(begin + index.stream_begin[stream], end, front.first);
    if (at > front.last && next != end && *next < std::min(at, front.first + period)) return 0;
  }
  // What streams that are far ahead do is to be theirs alone here, too.
  for (int32_t i = front.first - period; i >= 0 && i <= front.last; ++i) {
    const StreamMask streams = in_.index.BlockAt(program, i).streams;
    if ((streams & front.ahead) != 0 && (streams & ~front.ahead) != 0) return 0;
  }
  // Up to where instances are as those a period before.
  const auto end_from = [&](int32_t first) {
    return periods_.AlikeUntil(program, first - period) + period - 1;
  };
  // No stream is to be further.
  int32_t most = (end_from(front.first) - front.last) / period;
  for (uint32_t rest = front.ahead; rest != 0; rest &= rest - 1) {
    const int32_t at = front.at[__builtin_ctz(rest)];
    most = std::min(most, (end_from(at) - at) / period);
  }
  // What others wait for must not be over on the way.
  for (int32_t c = CursorOf(e, 0); c < CursorOf(e + 1, 0); ++c) {
    if (streams_.cursor(c).state != StreamCursor::kBlocked) continue;
    const int32_t blocker = streams_.cursor(c).blocker.instance;
    const int stream = streams_.cursor(c).blocking_stream;
    const int32_t last = (front.ahead >> stream & 1) != 0 ? front.at[stream] : front.last;
    if (blocker > last) most = std::min(most, (blocker - last) / period - 1);
  }
  return most;
}

void SteadyState::Skip(int32_t periods, const Snapshot& now, const Snapshot& before,
                       const std::vector<Front>& fronts) {
  SimTrace::Jump jump{periods, period_ps_, {}};
  for (int32_t e = 0; e < streams_.num_entities(); ++e) {
    RepeatPieces(e, fronts[e], periods);
    SimTrace::Repeat repeat{fronts[e].first, periods_.Of(in_.ProgramOf(e)), fronts[e].first};
    for (uint32_t rest = fronts[e].ahead; rest != 0; rest &= rest - 1) {
      repeat.all = std::max(repeat.all, fronts[e].at[__builtin_ctz(rest)]);
    }
    jump.repeats.push_back(repeat);
  }
  streams_.trace().jumps.push_back(std::move(jump));
  MoveStreams(periods, now, before);
  const int64_t way = periods * period_ps_;
  events_.Shift(way);
  transfers_.ShiftSharing(way);
}

void SteadyState::MoveStreams(int32_t periods, const Snapshot& now, const Snapshot& before) {
  const int64_t way = periods * period_ps_;
  // In the order of Take().
  size_t place = 0;
  const auto later = [&](int32_t& instance, int32_t entity) {
    const bool goes_on = now.places()[place].instance != before.places()[place].instance;
    ++place;
    if (goes_on) instance += periods * periods_.Of(in_.ProgramOf(entity));
    return goes_on;
  };
  for (int32_t e = 0; e < streams_.num_entities(); ++e) {
    LayerRun& run = streams_.run(e);
    overlap_.of(e).over_at += way;
    if (run.active) {
      later(run.instance, e);
      run.begin += way;
    }
    uint32_t rest = in_.index.program(in_.ProgramOf(e)).streams;
    for (; rest != 0; rest &= rest - 1) {
      const int stream = __builtin_ctz(rest);
      const int32_t c = CursorOf(e, stream);
      StreamCursor& cursor = streams_.cursor(c);
      const int32_t from = cursor.instance;
      if (later(cursor.instance, e)) {
        cursor.last_end += way;
        const ProgramIndex& index = in_.index.program(in_.ProgramOf(e));
        const auto begin = index.instances_of_streams.begin() + index.stream_begin[stream];
        const auto end = index.instances_of_streams.begin() + index.stream_begin[stream + 1];
        cursor.position =
            static_cast<int32_t>(std::lower_bound(begin, end, cursor.instance) - begin);
      }
      if (cursor.state == StreamCursor::kBlocked) {
        later(cursor.blocker.instance, e);
        streams_.Wake(e, MaskOf(stream));
      }
      // What it meets is known by where it was.
      if (cursor.state == StreamCursor::kMeeting) {
        transfers_.MoveMeeting(e, from, cursor.instance);
      }
      kernels_.Shift(c, way);
      transfers_.Shift(c, way);
    }
    streams_.FindWaiting(e);
  }
}

void SteadyState::RepeatPieces(int32_t e, const Front& front, int32_t periods) {
  const int32_t program = in_.ProgramOf(e), period = periods_.Of(program);
  // Instances of streams that are far ahead are theirs alone.
  const auto is_theirs = [&](int32_t instance) {
    return (in_.index.BlockAt(program, instance).streams & front.ahead) != 0;
  };
  // From the last, for the first may come to where the last was.
  for (int32_t i = front.last; i >= front.first; --i) {
    if (!is_theirs(i)) MovePieces(e, i, periods);
  }
  // Of the others, all that lies between two of theirs at once.
  std::vector<Stretch> stretches;
  const auto add = [&](int32_t first, int32_t end) {
    if (first < end) stretches.push_back({first, end});
  };
  int32_t from = front.first;
  for (int32_t i = front.first; front.ahead != 0 && i < front.first + period; ++i) {
    if (!is_theirs(i)) continue;
    add(from, i);
    from = i + 1;
  }
  add(from, front.first + period);
  RepeatPieces(e, stretches, periods);
  for (uint32_t rest = front.ahead; rest != 0; rest &= rest - 1) {
    const int32_t at = front.at[__builtin_ctz(rest)];
    MovePieces(e, at, periods);
    stretches.clear();
    for (int32_t i = at; i < at + period; ++i) {
      if (in_.index.BlockAt(program, i).streams == (rest & -rest)) add(i, i + 1);
    }
    RepeatPieces(e, stretches, periods);
  }
}

void SteadyState::MovePieces(int32_t e, int32_t i, int32_t periods) {
  const int32_t program = in_.ProgramOf(e);
  const int64_t way = periods * period_ps_;
  SimTrace& trace = streams_.trace();
  const Instance& instance = in_.index.InstanceOf(program, i);
  for (int32_t layer = 0; layer < instance.layer_count;) {
    const int32_t at = trace.PieceOf(e, i, layer);
    ++layer;
    if (at < 0) continue;
    Piece piece = trace.pieces[at];
    layer = piece.first_layer + piece.layers;
    if (piece.outcome >= 0) {
      piece.origin += way;
    } else {
      // Its streams go on with it.
      const Block& block = in_.graph.blocks[instance.block];
      const int64_t begin = piece.start - block.num_in_ports - 1;
      const int64_t count = piece.start + 2 * block.size() - begin;
      piece.start += static_cast<int64_t>(trace.times.size()) - begin;
      for (int64_t t = begin; t < begin + count; ++t) {
        const int64_t time = trace.times[t];
        trace.times.push_back(time == Streams::kUnknown ? time : time + way);
      }
    }
    trace.Add(e, i + periods * periods_.Of(program), piece);
  }
}

void SteadyState::RepeatPieces(int32_t e, const std::vector<Stretch>& stretches, int32_t periods) {
  if (stretches.empty()) return;
  const int32_t program = in_.ProgramOf(e);
  SimTrace& trace = streams_.trace();
  // Layers of an entity lie one behind another, those of each period as those of the one before.
  const int64_t* const layers = trace.layer_begin.data() + trace.instance_begin[e];
  const int32_t first = stretches.front().first;
  const int64_t length = layers[first] - layers[first - periods_.Of(program)];
  const auto begun = static_cast<int64_t>(trace.pieces.size());
  // In the first period a piece for each of the one before, in further ones as many again.
  for (const Stretch& stretch : stretches) {
    int32_t* const pieces = trace.piece_of.data() + layers[stretch.first];
    const int64_t count = layers[stretch.end - 1] - layers[stretch.first] +
                          in_.index.InstanceOf(program, stretch.end - 1).layer_count;
    int32_t known = -1, later = -1;  // a piece, and the one a period later
    for (int64_t l = 0; l < count; ++l) {
      const int32_t before = pieces[l - length];
      if (before != known && before >= 0) {
        later = static_cast<int32_t>(trace.pieces.size());
        trace.pieces.push_back(trace.pieces[before]);
        trace.pieces.back().origin += period_ps_;
      }
      known = before;
      pieces[l] = before < 0 ? -1 : later;
    }
  }
  const auto more = static_cast<int32_t>(trace.pieces.size() - begun);
  trace.pieces.resize(begun + int64_t{more} * periods);
  Piece* const repeated = trace.pieces.data() + begun;
  for (int64_t p = more; p < int64_t{more} * periods; ++p) {
    repeated[p] = repeated[p - more];
    repeated[p].origin += period_ps_;
  }
  for (int32_t period = 1; period < periods; ++period) {
    for (const Stretch& stretch : stretches) {
      int32_t* const pieces = trace.piece_of.data() + layers[stretch.first] + period * length;
      const int64_t count = layers[stretch.end - 1] - layers[stretch.first] +
                            in_.index.InstanceOf(program, stretch.end - 1).layer_count;
      for (int64_t l = 0; l < count; ++l) {
        const int32_t before = pieces[l - length];
        pieces[l] = before + (before < 0 ? 0 : more);
      }
    }
  }
}

}  // namespace plancast
